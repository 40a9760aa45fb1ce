! SPDX-License-Identifier: Apache-2.0
! attune.f90: attune for Fortran. Compile it with your compiler and link with libattune. A Fortran array of two
! dimensions is a matrix as attune has it by default, column by column, so that a product is one call:
!
!   call attune_tuner_create(tuner)
!   call attune_gemm(tuner, a, b, d)
!
! Arrays may be sections, a(1:n, 2:k), as long as the elements of a column lie side by side; nothing is copied. Every
! call that can fail has `status`, attune_ok or one of the other numbers, and `message`, which says what was wrong and
! what would be right. A failure that nobody asks for stops the program with the message, as ALLOCATE does.
!
! The host's work is done when a call returns. With a `stream` other than the host's default one it may go on after
! that: the arrays must then have the attributes TARGET and ASYNCHRONOUS, and live until attune_stream_synchronize.
! Memory of a GPU, which is no Fortran array, is given by its address to attune_gemm_c and attune_elementwise_c, the
! functions of C.
module attune
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: real32, real64, int32, int64
  implicit none
  private

  ! What a call returns.
  integer(c_int), parameter, public :: attune_ok = 0, attune_invalid_argument = 1, attune_out_of_memory = 2, &
    attune_unsupported = 3, attune_not_found = 4, attune_not_ready = 5, attune_device_error = 6, attune_capturing = 7, &
    attune_bad_data = 8, attune_permission = 9, attune_io_error = 10, attune_busy = 11, attune_budget_exhausted = 12, &
    attune_internal = 13
  ! Element types.
  integer(c_int), parameter, public :: attune_f64 = 1, attune_f32 = 2, attune_f16 = 3, attune_bf16 = 4, &
    attune_i32 = 5, attune_i64 = 6, attune_i8 = 7, attune_i16 = 8, attune_u8 = 9, attune_u16 = 10, attune_u32 = 11, &
    attune_u64 = 12, attune_bool = 13, attune_f8e4m3 = 14, attune_f8e5m2 = 15, attune_c64 = 16, attune_c128 = 17
  integer(c_int), parameter, public :: attune_column_major = 0, attune_row_major = 1
  integer(c_int), parameter, public :: attune_n = 0, attune_t = 1, attune_c = 2
  integer(c_int), parameter, public :: attune_strict = 0, attune_equivalent = 1, attune_reduced = 2
  integer(c_int), parameter, public :: attune_mode_off = 1, attune_mode_cached = 2, attune_mode_record = 3, &
    attune_mode_tune = 4
  integer(c_int), parameter, public :: attune_measure_auto = 0, attune_measure_cold_graph = 1, &
    attune_measure_cold_eager = 2, attune_measure_hot_graph = 3, attune_measure_hot_eager = 4
  integer(c_int), parameter, public :: attune_source_default = 1, attune_source_neighbour = 2, &
    attune_source_stored = 3, attune_source_system = 4, attune_source_tuned = 5
  integer, parameter, public :: attune_dims = 8, attune_problem_chars = 4096
  integer(c_int64_t), parameter, public :: attune_broadcast = -1

  ! ---- The structs of C, member by member ----
  type, bind(C), public :: attune_contract
    integer(c_int) :: accuracy = attune_strict
    integer(c_int) :: deterministic = 0
    integer(c_size_t) :: workspace_cap = 0
  end type

  type, bind(C), public :: attune_gemm_epilogue
    integer(c_int8_t) :: bias = 0
    integer(c_int8_t) :: bias_dtype = 0
    integer(c_int8_t) :: activation = 0
    integer(c_int8_t) :: aux = 0
    integer(c_int8_t) :: gradient = 0
    integer(c_int8_t) :: bias_gradient = 0
    integer(c_int8_t) :: residual = 0
    integer(c_int8_t) :: clamp = 0
  end type

  type, bind(C), public :: attune_gemm_scaling
    integer(c_int8_t) :: dtype_b = 0
    integer(c_int8_t) :: scale_a = 0
    integer(c_int8_t) :: scale_b = 0
    integer(c_int8_t) :: scale_d = 0
    integer(c_int8_t) :: amax_d = 0
    integer(c_int8_t) :: zero_a = 0
    integer(c_int8_t) :: zero_b = 0
    integer(c_int8_t) :: reserved = 0
  end type

  type, bind(C), public :: attune_gemm_problem
    integer(c_size_t) :: size = 0 ! as of version 0.1
    integer(c_int) :: dtype = attune_f32
    integer(c_int) :: dtype_out = 0
    integer(c_int) :: layout = attune_column_major
    integer(c_int) :: trans_a = attune_n
    integer(c_int) :: trans_b = attune_n
    integer(c_int64_t) :: m = 0
    integer(c_int64_t) :: n = 0
    integer(c_int64_t) :: k = 0
    integer(c_int64_t) :: batch = 1
    integer(c_int64_t) :: lda = 0
    integer(c_int64_t) :: ldb = 0
    integer(c_int64_t) :: ldc = 0
    integer(c_int64_t) :: ldd = 0
    integer(c_int64_t) :: stride_a = 0
    integer(c_int64_t) :: stride_b = 0
    integer(c_int64_t) :: stride_c = 0
    integer(c_int64_t) :: stride_d = 0
    type(attune_contract) :: contract
    type(attune_gemm_epilogue) :: epilogue
    type(attune_gemm_scaling) :: scaling
    integer(c_int8_t) :: pointers = 0
    integer(c_int8_t) :: alignment = 0
    integer(c_int8_t) :: gated = 0
    integer(c_int8_t) :: reserved(5) = 0
    integer(c_int64_t) :: ld_aux = 0
    integer(c_int64_t) :: ld_residual = 0
    integer(c_int64_t) :: stride_aux = 0
    integer(c_int64_t) :: stride_residual = 0
  end type

  type, bind(C), public :: attune_gemm_operands
    integer(c_size_t) :: size = 0 ! as of version 0.1
    real(c_double) :: alpha = 1
    type(c_ptr) :: a = c_null_ptr
    type(c_ptr) :: b = c_null_ptr
    real(c_double) :: beta = 0
    type(c_ptr) :: c = c_null_ptr
    type(c_ptr) :: d = c_null_ptr
    real(c_double) :: alpha_imag = 0
    real(c_double) :: beta_imag = 0
    type(c_ptr) :: bias = c_null_ptr
    type(c_ptr) :: residual = c_null_ptr
    type(c_ptr) :: aux = c_null_ptr
    type(c_ptr) :: bias_gradient = c_null_ptr
    real(c_double) :: clamp_min = 0
    real(c_double) :: clamp_max = 0
    type(c_ptr) :: scale_a = c_null_ptr
    type(c_ptr) :: scale_b = c_null_ptr
    type(c_ptr) :: scale_d = c_null_ptr
    type(c_ptr) :: amax_d = c_null_ptr
    type(c_ptr) :: zero_a = c_null_ptr
    type(c_ptr) :: zero_b = c_null_ptr
  end type

  type, bind(C), public :: attune_tensor
    type(c_ptr) :: name = c_null_ptr
    type(c_ptr) :: data = c_null_ptr
    integer(c_int) :: dtype = attune_f32
    integer(c_int) :: dims = 0
    integer(c_int64_t) :: sizes(attune_dims) = 0
    type(c_ptr) :: strides = c_null_ptr
  end type

  type, bind(C), public :: attune_scalar
    type(c_ptr) :: name = c_null_ptr
    integer(c_int) :: kind = attune_f64
    real(c_double) :: value = 0
    real(c_double) :: imaginary = 0
    integer(c_int64_t) :: integer = 0
  end type

  type, bind(C), public :: attune_elementwise_operands
    integer(c_size_t) :: size = 0 ! as of version 0.1
    type(c_ptr) :: outputs = c_null_ptr
    integer(c_int) :: output_count = 0
    type(c_ptr) :: inputs = c_null_ptr
    integer(c_int) :: input_count = 0
    type(c_ptr) :: scalars = c_null_ptr
    integer(c_int) :: scalar_count = 0
    type(c_ptr) :: generator = c_null_ptr
    integer(c_int) :: accuracy = attune_strict
  end type

  type, bind(C), public :: attune_tune_options
    integer(c_size_t) :: size = 0 ! as of version 0.1
    real(c_double) :: budget_ms = 0
    real(c_double) :: most_ms = 0
    integer(c_int) :: force = 0
    integer(c_int) :: no_wait = 0
  end type

  type, bind(C), public :: attune_tuner_options
    integer(c_size_t) :: size = 0 ! as of version 0.1
    type(c_ptr) :: database = c_null_ptr
    type(c_ptr) :: system_database = c_null_ptr
    integer(c_int) :: mode = 0
    real(c_double) :: budget_ms = 0
    real(c_double) :: total_budget_ms = 0
    integer(c_int) :: measure = attune_measure_auto
  end type

  type, bind(C), public :: attune_decision_info
    integer(c_size_t) :: size = 0
    type(c_ptr) :: device = c_null_ptr
    type(c_ptr) :: implementation = c_null_ptr
    integer(c_int) :: implementation_version = 0
    integer(c_int) :: source = 0
    type(c_ptr) :: configuration = c_null_ptr
    real(c_double) :: time_ns = 0
    real(c_double) :: spread = 0
    type(c_ptr) :: default_implementation = c_null_ptr
    real(c_double) :: default_time_ns = 0
    type(c_ptr) :: runner_up = c_null_ptr
    type(c_ptr) :: runner_up_configuration = c_null_ptr
    real(c_double) :: runner_up_time_ns = 0
    type(c_ptr) :: measure = c_null_ptr
    integer(c_int) :: samples = 0
    integer(c_int) :: candidates = 0
    integer(c_int) :: rejected = 0
    integer(c_int) :: disturbed = 0
    real(c_double) :: max_error = 0
    real(c_double) :: tuning_ms = 0
    integer(c_int64_t) :: tuned_at = 0
    integer(c_int) :: complete = 0
    integer(c_int) :: unsure = 0
    type(c_ptr) :: note = c_null_ptr
    real(c_double) :: placement_spread = 0
    type(c_ptr) :: changed = c_null_ptr
    type(c_ptr) :: problem = c_null_ptr
  end type

  ! A choice and the evidence for it.
  type, public :: attune_decision
    character(:), allocatable :: device
    character(:), allocatable :: implementation
    integer(c_int) :: implementation_version = 0
    integer(c_int) :: source = 0
    character(:), allocatable :: configuration
    real(c_double) :: time_ns = 0
    real(c_double) :: spread = 0
    character(:), allocatable :: default_implementation
    real(c_double) :: default_time_ns = 0
    character(:), allocatable :: runner_up
    character(:), allocatable :: runner_up_configuration
    real(c_double) :: runner_up_time_ns = 0
    character(:), allocatable :: measure
    integer(c_int) :: samples = 0
    integer(c_int) :: candidates = 0
    integer(c_int) :: rejected = 0
    integer(c_int) :: disturbed = 0
    real(c_double) :: max_error = 0
    real(c_double) :: tuning_ms = 0
    integer(c_int64_t) :: tuned_at = 0
    integer(c_int) :: complete = 0
    integer(c_int) :: unsure = 0
    character(:), allocatable :: note
    real(c_double) :: placement_spread = 0
    character(:), allocatable :: changed
    character(:), allocatable :: problem
  end type

  ! ---- Handles ----
  type, public :: attune_device
    type(c_ptr) :: handle = c_null_ptr
  end type
  type, public :: attune_stream
    type(c_ptr) :: handle = c_null_ptr
  end type
  type, public :: attune_tuner
    type(c_ptr) :: handle = c_null_ptr
  end type

  ! An array or a number of an expression, made by attune_operand.
  type, public :: attune_named
    private
    character(c_char) :: name(64) = c_null_char
    logical :: too_long = .false., between = .false. ! its name; its elements lie between those of its type
    logical :: number = .false.
    type(attune_scalar) :: scalar
    type(attune_tensor) :: tensor
    integer(c_int64_t) :: strides(attune_dims) = 1
  end type

  ! How an array lies: strides in elements, or what keeps attune from using it.
  type :: view
    type(c_ptr) :: data = c_null_ptr
    integer(c_int) :: dtype = attune_f32
    integer :: dims = 0
    integer(int64) :: bytes = 4, sizes(3) = 1, strides(3) = 1
    logical :: whole = .true.
  end type

  ! attune_gemm(tuner, a, b, d, [transa, transb, alpha, beta, c, stream, accuracy, status, message]) d = alpha op(a)
  ! op(b) + beta c. transa, transb: 't' takes the transpose, 'n' not. Without c, beta takes d itself, as in BLAS.
  ! Arrays of three dimensions are batches of matrices, the last one counting them; a or b of one matrix serves all.
  interface attune_gemm
    module procedure gemm_f32, gemm_f64, gemm_batch_f32, gemm_batch_f64
  end interface
  ! attune_gemm_format(problem, a, b, d, [transa, transb, beta, c, accuracy, status, message]): the problem that
  ! attune_gemm would run, as text, for attune_tune and attune_explain.
  interface attune_gemm_format
    module procedure format_f32, format_f64
  end interface
  ! attune_operand(array, ["name"]), attune_operand(number, "name"): what an expression is computed from, and into.
  ! The array has the attribute TARGET (or POINTER).
  interface attune_operand
    module procedure operand_f32_1, operand_f32_2, operand_f32_3, operand_f64_1, operand_f64_2, operand_f64_3, &
      operand_i32_1, operand_i32_2, operand_i32_3, operand_i64_1, operand_i64_2, operand_i64_3, &
      number_f64, number_i64
  end interface

  public :: attune_gemm, attune_gemm_format, attune_operand, attune_elementwise, attune_elementwise_format, &
    attune_tune, &
    attune_explain, attune_tuner_create, attune_tuner_destroy, attune_device_get, attune_device_count, &
    attune_device_name, &
    attune_stream_default, attune_stream_wrap, attune_stream_destroy, attune_stream_synchronize, attune_text, &
    attune_version, &
    attune_gemm_c, attune_elementwise_c

  ! ---- The functions of C ----
  interface
    integer(c_int) function attune_gemm_c(tuner, stream, problem, operands) bind(C, name="attune_gemm")
      import :: c_int, c_ptr, attune_gemm_problem, attune_gemm_operands
      type(c_ptr), value :: tuner, stream
      type(attune_gemm_problem), intent(in) :: problem
      type(attune_gemm_operands), intent(in) :: operands
    end function
    integer(c_int) function attune_gemm_problem_format_c(out, size, problem, operands) &
      bind(C, name="attune_gemm_problem_format")
      import :: c_int, c_char, c_size_t, attune_gemm_problem, attune_gemm_operands
      character(c_char), intent(out) :: out(*)
      integer(c_size_t), value :: size
      type(attune_gemm_problem), intent(in) :: problem
      type(attune_gemm_operands), intent(in) :: operands
    end function
    integer(c_int) function attune_elementwise_c(tuner, stream, expression, operands) bind(C, name="attune_elementwise")
      import :: c_int, c_char, c_ptr, attune_elementwise_operands
      type(c_ptr), value :: tuner, stream
      character(c_char), intent(in) :: expression(*)
      type(attune_elementwise_operands), intent(in) :: operands
    end function
    integer(c_int) function attune_elementwise_problem_format_c(out, size, expression, operands) &
      bind(C, name="attune_elementwise_problem_format")
      import :: c_int, c_char, c_size_t, attune_elementwise_operands
      character(c_char), intent(out) :: out(*)
      integer(c_size_t), value :: size
      character(c_char), intent(in) :: expression(*)
      type(attune_elementwise_operands), intent(in) :: operands
    end function
    integer(c_int) function attune_tuner_create_c(out, options) bind(C, name="attune_tuner_create")
      import :: c_int, c_ptr, attune_tuner_options
      type(c_ptr), intent(out) :: out
      type(attune_tuner_options), intent(in) :: options
    end function
    subroutine attune_tuner_destroy_c(tuner) bind(C, name="attune_tuner_destroy")
      import :: c_ptr
      type(c_ptr), value :: tuner
    end subroutine
    integer(c_int) function attune_tune_c(tuner, device, problem, options, out) bind(C, name="attune_tune")
      import :: c_int, c_char, c_ptr, attune_tune_options
      type(c_ptr), value :: tuner, device
      character(c_char), intent(in) :: problem(*)
      type(attune_tune_options), intent(in) :: options
      type(c_ptr), value :: out
    end function
    integer(c_int) function attune_explain_c(tuner, device, problem, out) bind(C, name="attune_explain")
      import :: c_int, c_char, c_ptr
      type(c_ptr), value :: tuner, device
      character(c_char), intent(in) :: problem(*)
      type(c_ptr), value :: out
    end function
    integer(c_int) function attune_decision_create_c(out, from) bind(C, name="attune_decision_create")
      import :: c_int, c_ptr
      type(c_ptr), intent(out) :: out
      type(c_ptr), value :: from
    end function
    integer(c_int) function attune_decision_get_info_c(decision, out) bind(C, name="attune_decision_get_info")
      import :: c_int, c_ptr, attune_decision_info
      type(c_ptr), value :: decision
      type(attune_decision_info), intent(inout) :: out
    end function
    subroutine attune_decision_destroy_c(decision) bind(C, name="attune_decision_destroy")
      import :: c_ptr
      type(c_ptr), value :: decision
    end subroutine
    integer(c_int) function attune_device_get_c(out, name) bind(C, name="attune_device_get")
      import :: c_int, c_char, c_ptr
      type(c_ptr), intent(out) :: out
      character(c_char), intent(in) :: name(*)
    end function
    integer(c_int) function attune_device_count() bind(C, name="attune_device_count")
      import :: c_int
    end function
    type(c_ptr) function attune_device_name_c(device) bind(C, name="attune_device_name")
      import :: c_ptr
      type(c_ptr), value :: device
    end function
    type(c_ptr) function attune_stream_default_c(device) bind(C, name="attune_stream_default")
      import :: c_ptr
      type(c_ptr), value :: device
    end function
    integer(c_int) function attune_stream_wrap_c(out, device, native) bind(C, name="attune_stream_wrap")
      import :: c_int, c_ptr
      type(c_ptr), intent(out) :: out
      type(c_ptr), value :: device, native
    end function
    integer(c_int) function attune_stream_synchronize_c(stream) bind(C, name="attune_stream_synchronize")
      import :: c_int, c_ptr
      type(c_ptr), value :: stream
    end function
    subroutine attune_stream_destroy_c(stream) bind(C, name="attune_stream_destroy")
      import :: c_ptr
      type(c_ptr), value :: stream
    end subroutine
    type(c_ptr) function attune_last_message_c() bind(C, name="attune_last_message")
      import :: c_ptr
    end function
    type(c_ptr) function attune_version_c() bind(C, name="attune_version")
      import :: c_ptr
    end function
    integer(c_size_t) function length_c(text) bind(C, name="strlen")
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
    end function
  end interface

contains

  ! ---- Texts and failures ----

  ! What a text of C holds, without its end.
  pure function attune_text(chars) result(text)
    character(c_char), intent(in) :: chars(:)
    character(:), allocatable :: text
    integer :: i, length
    length = size(chars)
    do i = 1, size(chars)
      if (chars(i) == c_null_char) then
        length = i - 1
        exit
      end if
    end do
    allocate (character(length) :: text)
    do i = 1, length
      text(i:i) = chars(i)
    end do
  end function

  function text_at(address) result(text)
    type(c_ptr), intent(in) :: address
    character(:), allocatable :: text
    character(c_char), pointer :: chars(:)
    if (.not. c_associated(address)) then
      text = ""
      return
    end if
    call c_f_pointer(address, chars, [length_c(address)])
    text = attune_text(chars)
  end function

  ! The version of the library in use.
  function attune_version() result(text)
    character(:), allocatable :: text
    text = text_at(attune_version_c())
  end function

  ! Gives a status and its message to the caller, or stops. `wrong` is what this module itself found; else C's
  ! message counts.
  subroutine settle(code, status, message, wrong)
    integer(c_int), intent(in) :: code
    integer(c_int), intent(out), optional :: status
    character(*), intent(out), optional :: message
    character(*), intent(in), optional :: wrong
    character(:), allocatable :: text
    text = ""
    if (code /= attune_ok) then
      if (present(wrong)) then
        text = wrong
      else
        text = text_at(attune_last_message_c())
      end if
    end if
    if (present(message)) message = text
    if (present(status)) then
      status = code
    else if (code /= attune_ok) then
      error stop "attune: " // text
    end if
  end subroutine

  pure function digits_of(number) result(text)
    integer(int64), intent(in) :: number
    character(:), allocatable :: text
    character(24) :: room
    write (room, "(i0)") number
    text = trim(room)
  end function

  pure function shape_of(v) result(text)
    type(view), intent(in) :: v
    character(:), allocatable :: text
    integer :: i
    text = digits_of(v%sizes(1))
    do i = 2, v%dims
      text = text // " x " // digits_of(v%sizes(i))
    end do
  end function

  ! ---- Devices, streams, tuners ----

  ! The device called "host", "cuda:0" and so on, or "best".
  subroutine attune_device_get(device, name, status, message)
    type(attune_device), intent(out) :: device
    character(*), intent(in) :: name
    integer(c_int), intent(out), optional :: status
    character(*), intent(out), optional :: message
    call settle(attune_device_get_c(device%handle, trim(name) // c_null_char), status, message)
  end subroutine

  function attune_device_name(device) result(text)
    type(attune_device), intent(in) :: device
    character(:), allocatable :: text
    text = text_at(attune_device_name_c(device%handle))
  end function

  ! The default stream of a device: the host's does its work at once.
  function attune_stream_default(device) result(stream)
    type(attune_device), intent(in) :: device
    type(attune_stream) :: stream
    stream%handle = attune_stream_default_c(device%handle)
  end function

  ! A handle for a cudaStream_t of the program, which must outlive it; attune_stream_destroy releases the handle.
  subroutine attune_stream_wrap(stream, device, native, status, message)
    type(attune_stream), intent(out) :: stream
    type(attune_device), intent(in) :: device
    type(c_ptr), intent(in) :: native
    integer(c_int), intent(out), optional :: status
    character(*), intent(out), optional :: message
    call settle(attune_stream_wrap_c(stream%handle, device%handle, native), status, message)
  end subroutine

  subroutine attune_stream_destroy(stream)
    type(attune_stream), intent(inout) :: stream
    call attune_stream_destroy_c(stream%handle)
    stream%handle = c_null_ptr
  end subroutine

  ! Waits for all work given to the stream.
  subroutine attune_stream_synchronize(stream, status, message)
    type(attune_stream), intent(in) :: stream
    integer(c_int), intent(out), optional :: status
    character(*), intent(out), optional :: message
    call settle(attune_stream_synchronize_c(stream%handle), status, message)
  end subroutine

  ! The handle of a stream that may be missing: then the host's default one.
  function handle_of(stream) result(handle)
    type(attune_stream), intent(in), optional :: stream
    type(c_ptr) :: handle, host
    if (present(stream)) then
      handle = stream%handle
    else
      handle = c_null_ptr
      if (attune_device_get_c(host, "host" // c_null_char) == attune_ok) handle = attune_stream_default_c(host)
    end if
  end function

  ! A new tuner: database and mode from the environment, where they are left out. database=":memory:" keeps winners
  ! in memory only.
  subroutine attune_tuner_create(tuner, database, mode, budget_ms, status, message)
    type(attune_tuner), intent(out) :: tuner
    character(*), intent(in), optional :: database
    integer(c_int), intent(in), optional :: mode
    real(real64), intent(in), optional :: budget_ms
    integer(c_int), intent(out), optional :: status
    character(*), intent(out), optional :: message
    type(attune_tuner_options) :: options
    character(:), allocatable, target :: path
    if (present(database)) then
      path = trim(database) // c_null_char
      options%database = c_loc(path)
    end if
    if (present(mode)) options%mode = mode
    if (present(budget_ms)) options%budget_ms = budget_ms
    call settle(attune_tuner_create_c(tuner%handle, options), status, message)
  end subroutine

  ! Writes what the tuner recorded and releases it. Its work must be done. A second call does nothing.
  subroutine attune_tuner_destroy(tuner)
    type(attune_tuner), intent(inout) :: tuner
    call attune_tuner_destroy_c(tuner%handle)
    tuner%handle = c_null_ptr
  end subroutine

  ! Tunes a problem (its text) on a device now and stores the winner; one that holds is taken as it is, unless `force`.
  subroutine attune_tune(tuner, device, problem, decision, budget_ms, force, status, message)
    type(attune_tuner), intent(in) :: tuner
    type(attune_device), intent(in) :: device
    character(*), intent(in) :: problem
    type(attune_decision), intent(out) :: decision
    real(real64), intent(in), optional :: budget_ms
    logical, intent(in), optional :: force
    integer(c_int), intent(out), optional :: status
    character(*), intent(out), optional :: message
    type(attune_tune_options) :: options
    type(c_ptr) :: held
    integer(c_int) :: code
    if (present(budget_ms)) options%budget_ms = budget_ms
    if (present(force)) options%force = merge(1, 0, force)
    code = attune_decision_create_c(held, c_null_ptr)
    if (code == attune_ok) &
      code = attune_tune_c(tuner%handle, device%handle, trim(problem) // c_null_char, options, held)
    call take(decision, held)
    call settle(code, status, message)
  end subroutine

  ! What a decision of C says; it is released.
  subroutine take(decision, held)
    type(attune_decision), intent(out) :: decision
    type(c_ptr), intent(in) :: held
    type(attune_decision_info) :: info
    if (c_associated(held)) then
      if (attune_decision_get_info_c(held, info) /= attune_ok) info = attune_decision_info()
    end if
    decision%device = text_at(info%device)
    decision%implementation = text_at(info%implementation)
    decision%implementation_version = info%implementation_version
    decision%source = info%source
    decision%configuration = text_at(info%configuration)
    decision%time_ns = info%time_ns
    decision%spread = info%spread
    decision%default_implementation = text_at(info%default_implementation)
    decision%default_time_ns = info%default_time_ns
    decision%runner_up = text_at(info%runner_up)
    decision%runner_up_configuration = text_at(info%runner_up_configuration)
    decision%runner_up_time_ns = info%runner_up_time_ns
    decision%measure = text_at(info%measure)
    decision%samples = info%samples
    decision%candidates = info%candidates
    decision%rejected = info%rejected
    decision%disturbed = info%disturbed
    decision%max_error = info%max_error
    decision%tuning_ms = info%tuning_ms
    decision%tuned_at = info%tuned_at
    decision%complete = info%complete
    decision%unsure = info%unsure
    decision%note = text_at(info%note)
    decision%placement_spread = info%placement_spread
    decision%changed = text_at(info%changed)
    decision%problem = text_at(info%problem)
    call attune_decision_destroy_c(held)
  end subroutine

  ! Which candidate runs for a problem on a device, and by what margin. Measures nothing.
  subroutine attune_explain(tuner, device, problem, decision, status, message)
    type(attune_tuner), intent(in) :: tuner
    type(attune_device), intent(in) :: device
    character(*), intent(in) :: problem
    type(attune_decision), intent(out) :: decision
    integer(c_int), intent(out), optional :: status
    character(*), intent(out), optional :: message
    type(c_ptr) :: held
    integer(c_int) :: code
    code = attune_decision_create_c(held, c_null_ptr)
    if (code == attune_ok) code = attune_explain_c(tuner%handle, device%handle, trim(problem) // c_null_char, held)
    call take(decision, held)
    call settle(code, status, message)
  end subroutine

  ! ---- How arrays lie ----

  function new_view(dtype, bytes, sizes) result(v)
    integer(c_int), intent(in) :: dtype
    integer, intent(in) :: bytes
    integer(int64), intent(in) :: sizes(:)
    type(view) :: v
    integer :: i
    v%dtype = dtype
    v%bytes = bytes
    v%dims = size(sizes)
    v%sizes(:v%dims) = sizes
    do i = 2, v%dims
      v%strides(i) = v%strides(i - 1) * max(sizes(i - 1), 1_int64)
    end do
  end function

  ! Notes where the second element along a dimension lies.
  subroutine step(v, dimension, second)
    type(view), intent(inout) :: v
    integer, intent(in) :: dimension
    type(c_ptr), intent(in) :: second
    integer(int64) :: apart
    apart = transfer(second, 0_c_intptr_t) - transfer(v%data, 0_c_intptr_t)
    if (mod(apart, v%bytes) /= 0) v%whole = .false.
    v%strides(dimension) = apart / v%bytes
  end subroutine

  function view_f32_1(a) result(v)
    real(real32), intent(in), target :: a(:)
    type(view) :: v
    v = new_view(attune_f32, 4, shape(a, int64))
    if (size(a) == 0) return
    v%data = c_loc(a(1))
    if (size(a, 1) > 1) call step(v, 1, c_loc(a(2)))
  end function

  function view_f32_2(a) result(v)
    real(real32), intent(in), target :: a(:, :)
    type(view) :: v
    v = new_view(attune_f32, 4, shape(a, int64))
    if (size(a) == 0) return
    v%data = c_loc(a(1, 1))
    if (size(a, 1) > 1) call step(v, 1, c_loc(a(2, 1)))
    if (size(a, 2) > 1) call step(v, 2, c_loc(a(1, 2)))
  end function

  function view_f32_3(a) result(v)
    real(real32), intent(in), target :: a(:, :, :)
    type(view) :: v
    v = new_view(attune_f32, 4, shape(a, int64))
    if (size(a) == 0) return
    v%data = c_loc(a(1, 1, 1))
    if (size(a, 1) > 1) call step(v, 1, c_loc(a(2, 1, 1)))
    if (size(a, 2) > 1) call step(v, 2, c_loc(a(1, 2, 1)))
    if (size(a, 3) > 1) call step(v, 3, c_loc(a(1, 1, 2)))
  end function

  function view_f64_1(a) result(v)
    real(real64), intent(in), target :: a(:)
    type(view) :: v
    v = new_view(attune_f64, 8, shape(a, int64))
    if (size(a) == 0) return
    v%data = c_loc(a(1))
    if (size(a, 1) > 1) call step(v, 1, c_loc(a(2)))
  end function

  function view_f64_2(a) result(v)
    real(real64), intent(in), target :: a(:, :)
    type(view) :: v
    v = new_view(attune_f64, 8, shape(a, int64))
    if (size(a) == 0) return
    v%data = c_loc(a(1, 1))
    if (size(a, 1) > 1) call step(v, 1, c_loc(a(2, 1)))
    if (size(a, 2) > 1) call step(v, 2, c_loc(a(1, 2)))
  end function

  function view_f64_3(a) result(v)
    real(real64), intent(in), target :: a(:, :, :)
    type(view) :: v
    v = new_view(attune_f64, 8, shape(a, int64))
    if (size(a) == 0) return
    v%data = c_loc(a(1, 1, 1))
    if (size(a, 1) > 1) call step(v, 1, c_loc(a(2, 1, 1)))
    if (size(a, 2) > 1) call step(v, 2, c_loc(a(1, 2, 1)))
    if (size(a, 3) > 1) call step(v, 3, c_loc(a(1, 1, 2)))
  end function

  function view_i32_1(a) result(v)
    integer(int32), intent(in), target :: a(:)
    type(view) :: v
    v = new_view(attune_i32, 4, shape(a, int64))
    if (size(a) == 0) return
    v%data = c_loc(a(1))
    if (size(a, 1) > 1) call step(v, 1, c_loc(a(2)))
  end function

  function view_i32_2(a) result(v)
    integer(int32), intent(in), target :: a(:, :)
    type(view) :: v
    v = new_view(attune_i32, 4, shape(a, int64))
    if (size(a) == 0) return
    v%data = c_loc(a(1, 1))
    if (size(a, 1) > 1) call step(v, 1, c_loc(a(2, 1)))
    if (size(a, 2) > 1) call step(v, 2, c_loc(a(1, 2)))
  end function

  function view_i32_3(a) result(v)
    integer(int32), intent(in), target :: a(:, :, :)
    type(view) :: v
    v = new_view(attune_i32, 4, shape(a, int64))
    if (size(a) == 0) return
    v%data = c_loc(a(1, 1, 1))
    if (size(a, 1) > 1) call step(v, 1, c_loc(a(2, 1, 1)))
    if (size(a, 2) > 1) call step(v, 2, c_loc(a(1, 2, 1)))
    if (size(a, 3) > 1) call step(v, 3, c_loc(a(1, 1, 2)))
  end function

  function view_i64_1(a) result(v)
    integer(int64), intent(in), target :: a(:)
    type(view) :: v
    v = new_view(attune_i64, 8, shape(a, int64))
    if (size(a) == 0) return
    v%data = c_loc(a(1))
    if (size(a, 1) > 1) call step(v, 1, c_loc(a(2)))
  end function

  function view_i64_2(a) result(v)
    integer(int64), intent(in), target :: a(:, :)
    type(view) :: v
    v = new_view(attune_i64, 8, shape(a, int64))
    if (size(a) == 0) return
    v%data = c_loc(a(1, 1))
    if (size(a, 1) > 1) call step(v, 1, c_loc(a(2, 1)))
    if (size(a, 2) > 1) call step(v, 2, c_loc(a(1, 2)))
  end function

  function view_i64_3(a) result(v)
    integer(int64), intent(in), target :: a(:, :, :)
    type(view) :: v
    v = new_view(attune_i64, 8, shape(a, int64))
    if (size(a) == 0) return
    v%data = c_loc(a(1, 1, 1))
    if (size(a, 1) > 1) call step(v, 1, c_loc(a(2, 1, 1)))
    if (size(a, 2) > 1) call step(v, 2, c_loc(a(1, 2, 1)))
    if (size(a, 3) > 1) call step(v, 3, c_loc(a(1, 1, 2)))
  end function

  ! ---- Products ----

  ! Sets a matrix of a problem: its leading dimension and stride. `wrong` is the reason, if it cannot be used as it
  ! lies. One whose rows lie side by side, as compilers pass transpose(a), is taken as its transpose, where `trans` is.
  subroutine place(name, given, ld, stride, batch, wrong, trans)
    character(*), intent(in) :: name
    type(view), intent(in) :: given
    integer(c_int64_t), intent(out) :: ld, stride
    integer(int64), intent(in) :: batch
    character(:), allocatable, intent(inout) :: wrong
    integer(c_int), intent(inout), optional :: trans
    type(view) :: v
    v = given
    if (present(trans) .and. v%sizes(1) > 1 .and. v%strides(1) /= 1 .and. (v%sizes(2) <= 1 .or. v%strides(2) == 1)) then
      v%sizes(:2) = v%sizes(2:1:-1)
      v%strides(:2) = v%strides(2:1:-1)
      trans = attune_t - trans
    end if
    ld = max(v%sizes(1), 1_int64)
    stride = 0
    if (allocated(wrong) .or. any(v%sizes == 0)) return
    if (.not. v%whole .or. (v%sizes(1) > 1 .and. v%strides(1) /= 1)) then
      wrong = name // " has elements of a column " // digits_of(given%strides(1)) // " apart; should be 1 apart"
    else if (v%sizes(2) > 1 .and. v%strides(2) < ld) then
      wrong = name // " has columns " // digits_of(v%strides(2)) // " apart; should be at least " // digits_of(ld)
    else if (v%sizes(3) > 1 .and. v%strides(3) <= 0) then
      wrong = name // " has matrices " // digits_of(v%strides(3)) // " apart; should be more than 0"
    end if
    if (allocated(wrong)) return
    if (v%sizes(2) > 1) ld = v%strides(2)
    if (batch > 1) then
      stride = v%strides(3)
      if (v%sizes(3) == 1) stride = attune_broadcast
    end if
  end subroutine

  logical function transposed(name, word, wrong)
    character(*), intent(in) :: name
    character(*), intent(in), optional :: word
    character(:), allocatable, intent(inout) :: wrong
    transposed = .false.
    if (.not. present(word)) return
    select case (word)
    case ("n", "N")
    case ("t", "T")
      transposed = .true.
    case default
      if (.not. allocated(wrong)) wrong = name // " is '" // word // "'; should be 'n' or 't'"
    end select
  end function

  ! The problem and its operands, or in `wrong` what is the matter with the arrays.
  subroutine describe(problem, operands, wrong, a, b, d, c, transa, transb, alpha, beta, accuracy)
    type(attune_gemm_problem), intent(out) :: problem
    type(attune_gemm_operands), intent(out) :: operands
    character(:), allocatable, intent(out) :: wrong
    type(view), intent(in) :: a, b, d
    type(view), intent(in), optional :: c
    character(*), intent(in), optional :: transa, transb
    real(real64), intent(in), optional :: alpha, beta
    integer(c_int), intent(in), optional :: accuracy
    integer(int64) :: inner
    logical :: ta, tb
    ta = transposed("transa", transa, wrong)
    tb = transposed("transb", transb, wrong)
    problem%dtype = a%dtype
    problem%trans_a = merge(attune_t, attune_n, ta)
    problem%trans_b = merge(attune_t, attune_n, tb)
    problem%m = d%sizes(1)
    problem%n = d%sizes(2)
    problem%k = merge(a%sizes(1), a%sizes(2), ta)
    problem%batch = d%sizes(3)
    if (present(accuracy)) problem%contract%accuracy = accuracy
    inner = merge(b%sizes(2), b%sizes(1), tb)
    if (.not. allocated(wrong)) then
      if (merge(a%sizes(2), a%sizes(1), ta) /= problem%m .or. merge(b%sizes(1), b%sizes(2), tb) /= problem%n .or. &
        inner /= problem%k) then
        wrong = "a is " // shape_of(a) // ", b is " // shape_of(b) // " and d is " // shape_of(d) // &
          "; should be m x k, k x n and m x n (k x m with transa='t', n x k with transb='t')"
      else if (all(a%sizes(3) /= [1_int64, problem%batch]) .or. all(b%sizes(3) /= [1_int64, problem%batch])) then
        wrong = "a has " // digits_of(a%sizes(3)) // " matrices, b " // digits_of(b%sizes(3)) // " and d " // &
          digits_of(problem%batch) // "; should be as many as d, or one"
      end if
    end if
    call place("a", a, problem%lda, problem%stride_a, problem%batch, wrong, problem%trans_a)
    call place("b", b, problem%ldb, problem%stride_b, problem%batch, wrong, problem%trans_b)
    call place("d", d, problem%ldd, problem%stride_d, problem%batch, wrong)
    operands%a = a%data
    operands%b = b%data
    operands%d = d%data
    operands%c = d%data
    problem%ldc = problem%ldd
    problem%stride_c = problem%stride_d
    if (present(alpha)) operands%alpha = alpha
    if (present(c)) then
      operands%beta = 1
      if (.not. allocated(wrong) .and. any(c%sizes /= d%sizes)) &
        wrong = "c is " // shape_of(c) // " and d is " // shape_of(d) // "; should have the same shape"
      call place("c", c, problem%ldc, problem%stride_c, problem%batch, wrong)
      operands%c = c%data
    end if
    if (present(beta)) operands%beta = beta
  end subroutine

  subroutine run(tuner, a, b, d, c, transa, transb, alpha, beta, stream, accuracy, status, message)
    type(attune_tuner), intent(in) :: tuner
    type(view), intent(in) :: a, b, d
    type(view), intent(in), optional :: c
    character(*), intent(in), optional :: transa, transb
    real(real64), intent(in), optional :: alpha, beta
    type(attune_stream), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: accuracy
    integer(c_int), intent(out), optional :: status
    character(*), intent(out), optional :: message
    type(attune_gemm_problem) :: problem
    type(attune_gemm_operands) :: operands
    character(:), allocatable :: wrong
    call describe(problem, operands, wrong, a, b, d, c, transa, transb, alpha, beta, accuracy)
    if (allocated(wrong)) then
      call settle(attune_invalid_argument, status, message, wrong)
    else if (any(d%sizes == 0)) then
      call settle(attune_ok, status, message)
    else
      call settle(attune_gemm_c(tuner%handle, handle_of(stream), problem, operands), status, message)
    end if
  end subroutine

  subroutine gemm_f32(tuner, a, b, d, transa, transb, alpha, beta, c, stream, accuracy, status, message)
    type(attune_tuner), intent(in) :: tuner
    real(real32), intent(in), target :: a(:, :), b(:, :)
    real(real32), intent(inout), target :: d(:, :)
    character(*), intent(in), optional :: transa, transb
    real(real64), intent(in), optional :: alpha, beta
    real(real32), intent(in), optional, target :: c(:, :)
    type(attune_stream), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: accuracy
    integer(c_int), intent(out), optional :: status
    character(*), intent(out), optional :: message
    type(view), allocatable :: other
    if (present(c)) other = view_f32_2(c)
    call run(tuner, view_f32_2(a), view_f32_2(b), view_f32_2(d), other, transa, transb, alpha, beta, stream, &
      accuracy, status, message)
  end subroutine

  subroutine gemm_batch_f32(tuner, a, b, d, transa, transb, alpha, beta, c, stream, accuracy, status, message)
    type(attune_tuner), intent(in) :: tuner
    real(real32), intent(in), target :: a(:, :, :), b(:, :, :)
    real(real32), intent(inout), target :: d(:, :, :)
    character(*), intent(in), optional :: transa, transb
    real(real64), intent(in), optional :: alpha, beta
    real(real32), intent(in), optional, target :: c(:, :, :)
    type(attune_stream), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: accuracy
    integer(c_int), intent(out), optional :: status
    character(*), intent(out), optional :: message
    type(view), allocatable :: other
    if (present(c)) other = view_f32_3(c)
    call run(tuner, view_f32_3(a), view_f32_3(b), view_f32_3(d), other, transa, transb, alpha, beta, stream, &
      accuracy, status, message)
  end subroutine

  subroutine gemm_f64(tuner, a, b, d, transa, transb, alpha, beta, c, stream, accuracy, status, message)
    type(attune_tuner), intent(in) :: tuner
    real(real64), intent(in), target :: a(:, :), b(:, :)
    real(real64), intent(inout), target :: d(:, :)
    character(*), intent(in), optional :: transa, transb
    real(real64), intent(in), optional :: alpha, beta
    real(real64), intent(in), optional, target :: c(:, :)
    type(attune_stream), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: accuracy
    integer(c_int), intent(out), optional :: status
    character(*), intent(out), optional :: message
    type(view), allocatable :: other
    if (present(c)) other = view_f64_2(c)
    call run(tuner, view_f64_2(a), view_f64_2(b), view_f64_2(d), other, transa, transb, alpha, beta, stream, &
      accuracy, status, message)
  end subroutine

  subroutine gemm_batch_f64(tuner, a, b, d, transa, transb, alpha, beta, c, stream, accuracy, status, message)
    type(attune_tuner), intent(in) :: tuner
    real(real64), intent(in), target :: a(:, :, :), b(:, :, :)
    real(real64), intent(inout), target :: d(:, :, :)
    character(*), intent(in), optional :: transa, transb
    real(real64), intent(in), optional :: alpha, beta
    real(real64), intent(in), optional, target :: c(:, :, :)
    type(attune_stream), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: accuracy
    integer(c_int), intent(out), optional :: status
    character(*), intent(out), optional :: message
    type(view), allocatable :: other
    if (present(c)) other = view_f64_3(c)
    call run(tuner, view_f64_3(a), view_f64_3(b), view_f64_3(d), other, transa, transb, alpha, beta, stream, &
      accuracy, status, message)
  end subroutine

  subroutine format_views(problem, a, b, d, transa, transb, beta, accuracy, status, message)
    character(:), allocatable, intent(out) :: problem
    type(view), intent(in) :: a, b, d
    character(*), intent(in), optional :: transa, transb
    real(real64), intent(in), optional :: beta
    integer(c_int), intent(in), optional :: accuracy
    integer(c_int), intent(out), optional :: status
    character(*), intent(out), optional :: message
    type(attune_gemm_problem) :: asked
    type(attune_gemm_operands) :: operands
    character(:), allocatable :: wrong
    character(c_char) :: room(attune_problem_chars)
    integer(c_int) :: code
    problem = ""
    call describe(asked, operands, wrong, a, b, d, transa=transa, transb=transb, beta=beta, accuracy=accuracy)
    if (allocated(wrong)) then
      call settle(attune_invalid_argument, status, message, wrong)
      return
    end if
    code = attune_gemm_problem_format_c(room, size(room, kind=c_size_t), asked, operands)
    if (code == attune_ok) problem = attune_text(room)
    call settle(code, status, message)
  end subroutine

  subroutine format_f32(problem, a, b, d, transa, transb, beta, accuracy, status, message)
    character(:), allocatable, intent(out) :: problem
    real(real32), intent(in), target :: a(:, :), b(:, :), d(:, :)
    character(*), intent(in), optional :: transa, transb
    real(real64), intent(in), optional :: beta
    integer(c_int), intent(in), optional :: accuracy
    integer(c_int), intent(out), optional :: status
    character(*), intent(out), optional :: message
    call format_views(problem, view_f32_2(a), view_f32_2(b), view_f32_2(d), transa, transb, beta, accuracy, status, &
      message)
  end subroutine

  subroutine format_f64(problem, a, b, d, transa, transb, beta, accuracy, status, message)
    character(:), allocatable, intent(out) :: problem
    real(real64), intent(in), target :: a(:, :), b(:, :), d(:, :)
    character(*), intent(in), optional :: transa, transb
    real(real64), intent(in), optional :: beta
    integer(c_int), intent(in), optional :: accuracy
    integer(c_int), intent(out), optional :: status
    character(*), intent(out), optional :: message
    call format_views(problem, view_f64_2(a), view_f64_2(b), view_f64_2(d), transa, transb, beta, accuracy, status, &
      message)
  end subroutine

  ! ---- Expressions ----

  subroutine give_name(made, name)
    type(attune_named), intent(inout) :: made
    character(*), intent(in) :: name
    integer :: i
    made%too_long = len_trim(name) >= size(made%name)
    do i = 1, min(len_trim(name), size(made%name) - 1)
      made%name(i) = name(i:i)
    end do
  end subroutine

  ! attune counts dimensions from the outermost one, Fortran from the innermost.
  function operand_of(v, name) result(made)
    type(view), intent(in) :: v
    character(*), intent(in), optional :: name
    type(attune_named) :: made
    made%tensor%data = v%data
    made%tensor%dtype = v%dtype
    made%tensor%dims = v%dims
    made%tensor%sizes(:v%dims) = v%sizes(v%dims:1:-1)
    made%strides(:v%dims) = v%strides(v%dims:1:-1)
    made%between = .not. v%whole
    if (present(name)) call give_name(made, name)
  end function

  function operand_f32_1(a, name) result(made)
    real(real32), pointer, intent(in) :: a(:)
    character(*), intent(in), optional :: name
    type(attune_named) :: made
    made = operand_of(view_f32_1(a), name)
  end function

  function operand_f32_2(a, name) result(made)
    real(real32), pointer, intent(in) :: a(:, :)
    character(*), intent(in), optional :: name
    type(attune_named) :: made
    made = operand_of(view_f32_2(a), name)
  end function

  function operand_f32_3(a, name) result(made)
    real(real32), pointer, intent(in) :: a(:, :, :)
    character(*), intent(in), optional :: name
    type(attune_named) :: made
    made = operand_of(view_f32_3(a), name)
  end function

  function operand_f64_1(a, name) result(made)
    real(real64), pointer, intent(in) :: a(:)
    character(*), intent(in), optional :: name
    type(attune_named) :: made
    made = operand_of(view_f64_1(a), name)
  end function

  function operand_f64_2(a, name) result(made)
    real(real64), pointer, intent(in) :: a(:, :)
    character(*), intent(in), optional :: name
    type(attune_named) :: made
    made = operand_of(view_f64_2(a), name)
  end function

  function operand_f64_3(a, name) result(made)
    real(real64), pointer, intent(in) :: a(:, :, :)
    character(*), intent(in), optional :: name
    type(attune_named) :: made
    made = operand_of(view_f64_3(a), name)
  end function

  function operand_i32_1(a, name) result(made)
    integer(int32), pointer, intent(in) :: a(:)
    character(*), intent(in), optional :: name
    type(attune_named) :: made
    made = operand_of(view_i32_1(a), name)
  end function

  function operand_i32_2(a, name) result(made)
    integer(int32), pointer, intent(in) :: a(:, :)
    character(*), intent(in), optional :: name
    type(attune_named) :: made
    made = operand_of(view_i32_2(a), name)
  end function

  function operand_i32_3(a, name) result(made)
    integer(int32), pointer, intent(in) :: a(:, :, :)
    character(*), intent(in), optional :: name
    type(attune_named) :: made
    made = operand_of(view_i32_3(a), name)
  end function

  function operand_i64_1(a, name) result(made)
    integer(int64), pointer, intent(in) :: a(:)
    character(*), intent(in), optional :: name
    type(attune_named) :: made
    made = operand_of(view_i64_1(a), name)
  end function

  function operand_i64_2(a, name) result(made)
    integer(int64), pointer, intent(in) :: a(:, :)
    character(*), intent(in), optional :: name
    type(attune_named) :: made
    made = operand_of(view_i64_2(a), name)
  end function

  function operand_i64_3(a, name) result(made)
    integer(int64), pointer, intent(in) :: a(:, :, :)
    character(*), intent(in), optional :: name
    type(attune_named) :: made
    made = operand_of(view_i64_3(a), name)
  end function

  function number_f64(value, name) result(made)
    real(real64), intent(in) :: value
    character(*), intent(in) :: name
    type(attune_named) :: made
    made%number = .true.
    made%scalar%value = value
    call give_name(made, name)
  end function

  function number_i64(value, name) result(made)
    integer(int64), intent(in) :: value
    character(*), intent(in) :: name
    type(attune_named) :: made
    made%number = .true.
    made%scalar%kind = attune_i64
    made%scalar%integer = value
    call give_name(made, name)
  end function

  subroutine look(operand, wrong)
    type(attune_named), intent(in) :: operand
    character(:), allocatable, intent(inout) :: wrong
    if (operand%too_long) wrong = "an operand is called " // attune_text(operand%name) // &
      "...; should be a name of at most 63 letters"
    if (operand%between) wrong = attune_text(operand%name) // &
      " has elements that lie no multiple of their size apart; should lie so"
  end subroutine

  ! Runs an expression, or with `room` writes its problem there.
  integer(c_int) function compute(tuner, stream, expression, outputs, inputs, accuracy, wrong, room) result(code)
    type(c_ptr), intent(in) :: tuner, stream
    character(*), intent(in) :: expression
    type(attune_named), intent(in), target :: outputs(:), inputs(:)
    integer(c_int), intent(in), optional :: accuracy
    character(:), allocatable, intent(out) :: wrong
    character(c_char), intent(inout), optional :: room(:)
    type(attune_tensor), target :: out(size(outputs)), in(size(inputs))
    type(attune_scalar), target :: numbers(size(inputs))
    type(attune_elementwise_operands) :: operands
    integer :: i, arrays, count
    arrays = 0
    count = 0
    code = attune_invalid_argument
    do i = 1, size(outputs)
      call look(outputs(i), wrong)
      if (outputs(i)%number) wrong = "an output is a number; should be an array"
      out(i) = outputs(i)%tensor
      out(i)%strides = c_loc(outputs(i)%strides)
    end do
    do i = 1, size(inputs)
      call look(inputs(i), wrong)
      if (inputs(i)%number) then
        count = count + 1
        numbers(count) = inputs(i)%scalar
        numbers(count)%name = c_loc(inputs(i)%name)
      else
        arrays = arrays + 1
        in(arrays) = inputs(i)%tensor
        in(arrays)%name = c_loc(inputs(i)%name)
        in(arrays)%strides = c_loc(inputs(i)%strides)
      end if
    end do
    if (allocated(wrong)) return
    if (size(out) > 0) operands%outputs = c_loc(out)
    if (arrays > 0) operands%inputs = c_loc(in)
    if (count > 0) operands%scalars = c_loc(numbers)
    operands%output_count = size(out)
    operands%input_count = arrays
    operands%scalar_count = count
    if (present(accuracy)) operands%accuracy = accuracy
    if (present(room)) then
      code = attune_elementwise_problem_format_c(room, size(room, kind=c_size_t), trim(expression) // c_null_char, &
        operands)
    else
      code = attune_elementwise_c(tuner, stream, trim(expression) // c_null_char, operands)
    end if
  end function

  ! Computes an expression over elements:
  !   call attune_elementwise(tuner, "gelu(a + s) * b", [attune_operand(y)], &
  !                           [attune_operand(a, "a"), attune_operand(b, "b"), attune_operand(2.0_real64, "s")])
  subroutine attune_elementwise(tuner, expression, outputs, inputs, stream, accuracy, status, message)
    type(attune_tuner), intent(in) :: tuner
    character(*), intent(in) :: expression
    type(attune_named), intent(in) :: outputs(:), inputs(:)
    type(attune_stream), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: accuracy
    integer(c_int), intent(out), optional :: status
    character(*), intent(out), optional :: message
    character(:), allocatable :: wrong
    integer(c_int) :: code
    code = compute(tuner%handle, handle_of(stream), expression, outputs, inputs, accuracy, wrong)
    call settle(code, status, message, wrong)
  end subroutine

  ! The problem that attune_elementwise would run, as text, for attune_tune and attune_explain.
  subroutine attune_elementwise_format(problem, expression, outputs, inputs, accuracy, status, message)
    character(:), allocatable, intent(out) :: problem
    character(*), intent(in) :: expression
    type(attune_named), intent(in) :: outputs(:), inputs(:)
    integer(c_int), intent(in), optional :: accuracy
    integer(c_int), intent(out), optional :: status
    character(*), intent(out), optional :: message
    character(:), allocatable :: wrong
    character(c_char) :: room(attune_problem_chars)
    integer(c_int) :: code
    code = compute(c_null_ptr, c_null_ptr, expression, outputs, inputs, accuracy, wrong, room)
    problem = ""
    if (code == attune_ok) problem = attune_text(room)
    call settle(code, status, message, wrong)
  end subroutine
end module
