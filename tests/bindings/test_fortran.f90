! SPDX-License-Identifier: Apache-2.0
! test_fortran.f90: the Fortran module on the host: products, sections, transposes, batches, expressions, tuning, and
! what is refused and how.
program test_fortran
  use attune
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: real32, real64, int32, int64
  implicit none
  type(attune_tuner) :: tuner
  type(attune_device) :: host
  character(256) :: message
  integer(c_int) :: status
  integer :: failures = 0

  call attune_device_get(host, "host")
  call check(attune_device_name(host) == "host", "the host is there")
  call check(attune_device_count() >= 1, "and counted")
  call check(index(attune_version(), ".") > 0, "the version is text")
  call attune_tuner_create(tuner, ":memory:", mode=attune_mode_off)
  call products
  call sections
  call batches
  call refused
  call empty
  call expressions
  call refused_expressions
  call tuning
  call handles
  call attune_tuner_destroy(tuner)
  call attune_tuner_destroy(tuner)
  if (failures > 0) error stop "failed"
  print "(a)", "the Fortran module does what it should"

contains

  subroutine check(right, what)
    logical, intent(in) :: right
    character(*), intent(in) :: what
    if (right) return
    failures = failures + 1
    print "(3a, i0, 2a)", "wrong: ", what, "; status ", status, ", ", trim(message)
  end subroutine

  ! The latest call was refused with this status, and its message has these words.
  subroutine expect(code, words)
    integer(c_int), intent(in) :: code
    character(*), intent(in) :: words
    call check(status == code .and. index(message, words) > 0, "should be refused with '" // words // "'")
    status = -1
    message = ""
  end subroutine

  subroutine products
    real(real32) :: a(5, 7), b(7, 3), d(5, 3), c(5, 3)
    real(real64) :: x(6, 4), y(4, 6), z(6, 6)
    call random_number(a)
    call random_number(b)
    call random_number(c)
    call attune_gemm(tuner, a, b, d)
    call check(near(d, matmul(a, b)), "a b")
    call attune_gemm(tuner, transpose(a), transpose(b), d, transa="t", transb="T")
    call check(near(d, matmul(a, b)), "transposes of both")
    call attune_gemm(tuner, transpose(transpose(a)), (b), d)
    call check(near(d, matmul(a, b)), "expressions")
    call attune_gemm(tuner, transpose(reshape(a, [7, 5])), b, d)
    call check(near(d, matmul(transpose(reshape(a, [7, 5])), b)), "rows that lie side by side")
    call attune_gemm(tuner, a, b, d, alpha=2.0_real64, beta=0.5_real64, c=c)
    call check(near(d, 2 * matmul(a, b) + 0.5 * c), "alpha a b + beta c")
    call attune_gemm(tuner, a, b, d, c=c)
    call check(near(d, matmul(a, b) + c), "c alone counts once")
    d = c
    call attune_gemm(tuner, a, b, d, beta=3.0_real64, status=status, message=message)
    call check(near(d, matmul(a, b) + 3 * c) .and. status == attune_ok .and. message == "", "beta of d itself")
    call random_number(x)
    call random_number(y)
    call attune_gemm(tuner, x, y, z, accuracy=attune_strict, stream=attune_stream_default(host))
    call check(maxval(abs(z - matmul(x, y))) < 1e-13_real64, "real64")
  end subroutine

  logical function near(d, expected)
    real(real32), intent(in) :: d(:, :), expected(:, :)
    near = all(shape(d) == shape(expected))
    if (near) near = maxval(abs(d - expected)) < 1e-5_real32
  end function

  ! Sections are used where they lie: nothing around the result changes.
  subroutine sections
    real(real32) :: a(20, 20), b(20, 20), d(20, 20), before(20, 20)
    real(real32), allocatable :: lower(:, :)
    call random_number(a)
    call random_number(b)
    call random_number(d)
    before = d
    call attune_gemm(tuner, a(3:7, 1:14:2), b(5:11, 4:6), d(2:6, 10:12))
    call check(near(d(2:6, 10:12), matmul(a(3:7, 1:14:2), b(5:11, 4:6))), "sections")
    d(2:6, 10:12) = before(2:6, 10:12)
    call check(all(d == before), "around a section")
    call attune_gemm(tuner, a(1:5, 1:7), b(2:8, 3:3), d(1:5, 1:1))
    call check(near(d(1:5, 1:1), matmul(a(1:5, 1:7), b(2:8, 3:3))), "one column")
    call attune_gemm(tuner, a(1:20:19, 1:7), b(2:8, 3:4), d(1:2, 1:2), status=status, message=message)
    call expect(attune_invalid_argument, "a has elements of a column 19 apart; should be 1 apart")
    call attune_gemm(tuner, a(1:20:5, 2:2), b(3:3, 1:14:2), d(1:4, 1:7))
    call check(near(d(1:4, 1:7), matmul(a(1:20:5, 2:2), b(3:3, 1:14:2))), "a column with steps")
    call attune_gemm(tuner, a(5:1:-1, 1:7), b(2:8, 3:4), d(1:5, 1:2), status=status, message=message)
    call expect(attune_invalid_argument, "a has elements of a column -1 apart")
    call attune_gemm(tuner, a(1:5, 7:1:-1), b(2:8, 3:4), d(1:5, 1:2), status=status, message=message)
    call expect(attune_invalid_argument, "a has columns -20 apart; should be at least 5")
    call attune_gemm(tuner, a(1:5, 1:7), b(2:8, 3:4), d(1:10:2, 1:2), status=status, message=message)
    call expect(attune_invalid_argument, "d has elements of a column 2 apart")
    allocate (lower(0:4, -1:5), source=a(1:5, 1:7))
    call attune_gemm(tuner, lower, b(1:7, 1:3), d(1:5, 1:3))
    call check(near(d(1:5, 1:3), matmul(a(1:5, 1:7), b(1:7, 1:3))), "other lower bounds")
  end subroutine

  subroutine batches
    real(real64) :: a(4, 6, 3), b(6, 5, 1), d(4, 5, 3), short(4, 5, 2)
    integer :: i
    call random_number(a)
    call random_number(b)
    call attune_gemm(tuner, a, b, d)
    do i = 1, 3
      call check(maxval(abs(d(:, :, i) - matmul(a(:, :, i), b(:, :, 1)))) < 1e-13_real64, "a batch")
    end do
    call attune_gemm(tuner, a(:, :, 3:1:-2), b, short, status=status, message=message)
    call expect(attune_invalid_argument, "a has matrices -48 apart")
    call attune_gemm(tuner, a, b, short, status=status, message=message)
    call expect(attune_invalid_argument, "a has 3 matrices, b 1 and d 2")
  end subroutine

  subroutine refused
    real(real32) :: a(5, 7), b(7, 3), d(5, 3)
    type(attune_tuner) :: none
    call random_number(a)
    call random_number(b)
    call attune_gemm(tuner, a, a, d, status=status, message=message)
    call expect(attune_invalid_argument, "a is 5 x 7, b is 5 x 7 and d is 5 x 3")
    call attune_gemm(tuner, a, b, d, transa="t", status=status, message=message)
    call expect(attune_invalid_argument, "k x m with transa='t'")
    call attune_gemm(tuner, a, b, d, transb="x", status=status, message=message)
    call expect(attune_invalid_argument, "transb is 'x'; should be 'n' or 't'")
    call attune_gemm(tuner, a, b, d, c=b, status=status, message=message)
    call expect(attune_invalid_argument, "c is 7 x 3 and d is 5 x 3")
    call attune_gemm(tuner, a, b, d, accuracy=7, status=status, message=message)
    call expect(attune_invalid_argument, "accuracy")
    call attune_gemm(none, a, b, d, status=status, message=message)
    call expect(attune_invalid_argument, "tuner is NULL")
    call attune_device_get(host, "gpu", status, message)
    call expect(attune_invalid_argument, "gpu")
    call attune_device_get(host, "host")
    call attune_tuner_create(none, mode=77, status=status, message=message)
    call expect(attune_invalid_argument, "mode")
  end subroutine

  subroutine empty
    real(real32) :: a(5, 0), b(0, 3), d(5, 3), nothing(0, 3), rows(0, 5), other(5, 3)
    d = 2
    call random_number(other)
    call attune_gemm(tuner, a, b, d, beta=3.0_real64, status=status, message=message)
    call check(status == attune_ok .and. all(d == 6), "k = 0 is beta d")
    call attune_gemm(tuner, rows, other, nothing, status=status, message=message)
    call check(status == attune_ok, "no rows")
  end subroutine

  subroutine expressions
    real(real32), target :: a(4, 6), b(4), y(4, 6)
    real(real64), target :: u(3), v(3)
    integer(int32), target :: i(5)
    integer(int64), target :: k(2, 2, 2)
    call random_number(a)
    call random_number(b)
    call attune_elementwise(tuner, "a * s + b", [attune_operand(y)], &
      [attune_operand(a, "a"), attune_operand(b, "b"), attune_operand(2.5_real64, "s")])
    call check(near(y, 2.5 * a + spread(b, 2, 6)), "a vector is added to each column")
    call attune_elementwise(tuner, "index(0) + 10 * index(1)", [attune_operand(y)], [attune_named :: ], status=status, &
      message=message)
    call check(y(3, 2) == 12, "the first index is the innermost one")
    y = 0
    call attune_elementwise(tuner, "x + 1", [attune_operand(y(4:1:-2, ::3))], [attune_operand(a(1:2, 2:3), "x")])
    call check(y(4, 1) == a(1, 2) + 1 .and. y(2, 4) == a(2, 3) + 1 .and. count(y /= 0) == 4, "sections of any strides")
    call attune_elementwise(tuner, "a * 2", [attune_operand(a)], [attune_operand(a, "a")])
    u = [1, 2, 3]
    call attune_elementwise(tuner, "u / 2, u * u", [attune_operand(v), attune_operand(i(:3))], [attune_operand(u, "u")])
    call check(all(v == u / 2) .and. all(i(:3) == [1, 4, 9]), "two outputs")
    k = 3
    call attune_elementwise(tuner, "k << n", [attune_operand(k)], [attune_operand(k, "k"), &
      attune_operand(40_int64, "n")])
    call check(all(k == ishft(3_int64, 40)), "int64")
  end subroutine

  subroutine refused_expressions
    real(real32), target :: a(4, 6), y(4, 6), short(3)
    call attune_elementwise(tuner, "a +", [attune_operand(y)], [attune_operand(a, "a")], status=status, message=message)
    call expect(attune_invalid_argument, "the expression ends")
    call attune_elementwise(tuner, "a", [attune_operand(y)], [attune_operand(short, "a")], status=status, &
      message=message)
    call expect(attune_invalid_argument, "a")
    call attune_elementwise(tuner, "a", [attune_operand(y)], [attune_operand(a)], status=status, message=message)
    call expect(attune_invalid_argument, "")
    call attune_elementwise(tuner, "a", [attune_operand(1.0_real64, "a")], [attune_operand(a, "a")], &
      status=status, message=message)
    call expect(attune_invalid_argument, "an output is a number")
    call attune_elementwise(tuner, "a", [attune_operand(y)], [attune_operand(a, repeat("n", 64))], &
      status=status, message=message)
    call expect(attune_invalid_argument, "should be a name of at most 63 letters")
  end subroutine

  subroutine tuning
    real(real32) :: a(24, 16), b(16, 8), d(24, 8)
    real(real32), target :: x(64), y(64)
    type(attune_decision) :: decision
    character(:), allocatable :: problem
    call attune_gemm_format(problem, a, b, d, beta=1.0_real64)
    call check(index(problem, "gemm f32 nn 24x8x16 strict") == 1 .and. index(problem, "beta") > 0, "a problem's text")
    call attune_gemm_format(problem, a, b, d)
    call attune_tune(tuner, host, problem, decision, budget_ms=30.0_real64, force=.true.)
    call check(decision%source == attune_source_tuned .and. decision%time_ns > 0, "tuned")
    call attune_explain(tuner, host, problem, decision)
    call check(decision%device == "host" .and. len(decision%implementation) > 0, "explained")
    call attune_elementwise_format(problem, "gelu(x)", [attune_operand(y)], [attune_operand(x, "x")])
    call check(index(problem, "elementwise 64 strict") == 1, "an expression's text")
    call attune_explain(tuner, host, "gemm f32", decision, status, message)
    call expect(attune_invalid_argument, "")
    call attune_tune(tuner, host, "nonsense", decision, status=status, message=message)
    call expect(attune_invalid_argument, "")
    call attune_gemm_format(problem, a, a, d, status=status, message=message)
    call expect(attune_invalid_argument, "a is 24 x 16")
  end subroutine

  subroutine handles
    type(attune_stream) :: stream
    stream = attune_stream_default(host)
    call check(c_associated(stream%handle), "the default stream")
    call attune_stream_synchronize(stream, status, message)
    call check(status == attune_ok, "its work is done")
    call attune_stream_wrap(stream, host, c_null_ptr, status, message)
    call expect(attune_unsupported, "")
    call attune_stream_destroy(stream)
  end subroutine
end program
