#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_foreign_pages.sh: the commands of docs/formats.md that make workloads of other programs' files, on files as these programs
# write them: attune reads what comes out, and finds the problems that were in them.
# Environment: SOURCE (attune's root), COMMAND (attune), WORK (a folder of its own).
set -eu
rm -rf "$WORK"
mkdir -p "$WORK"
cd "$WORK"

cat >tunableop_results0.csv <<'END'
Validator,PT_VERSION,2.11.0
Validator,GCN_ARCH_NAME,gfx942:sramecc+:xnack-
GemmTunableOp_BFloat16_TN,tn_4096_16_2048_ld_2048_2048_4096,Default,0.00867552
GemmTunableOp_float_NT,nt_25088_4096_64,Gemm_Hipblaslt_1219,1.262
ScaledGemmTunableOp_Float8_e4m3fn_Float8_e4m3fn_BFloat16_TN,tn_8_8_16_ld_16_16_8,Default,0.1
GemmTunableOp_double_NN,nn_5_6_7,Default,0.1
END
cat >bf16_tuned_gemm.csv <<'END'
cu_num,M,N,K,bias,dtype,outdtype,scaleAB,libtype,solidx,splitK,us
304,128,1536,7168,False,torch.bfloat16,torch.bfloat16,False,hipblaslt,1,0,10.2
END
cat >bench.log <<'END'
./rocblas-bench -f gemm -r f32_r --transposeA N --transposeB T -m 128 -n 64 -k 32 --alpha 1 --lda 128 --ldb 64 --beta 0 --ldc 128
./rocblas-bench -f gemm_strided_batched_ex --transposeA T --transposeB N -m 8 -n 9 -k 10 --a_type f16_r --batch_count 3
hipblaslt-bench --api_method c -m 512 -n 1 -k 2048 --a_type bf16_r --transA T --transB N
./rocblas-bench -f gemv -r f32_r -m 128 -n 64 --lda 128
./rocblas-bench -f gemm -r i8_r -m 8 -n 8 -k 8
END
awk '/^### Workloads from other programs/ { part = 1; next } /^##/ { part = 0 }
  part && $0 == "```sh" { inside = 1; next } $0 == "```" { inside = 0 } inside' "$SOURCE/docs/formats.md" >commands.sh
[ -s commands.sh ] || { echo "the page has lost its commands"; exit 1; }
sh -eu commands.sh

expect() { # expect FILE PROBLEM...
  file=$1
  shift
  "$COMMAND" show "$file" --db :memory: --device host --csv | tail -n +2 | cut -d, -f2 >found
  printf '%s\n' "$@" >wanted
  diff wanted found || { echo "$file holds other problems than its source"; exit 1; }
}
expect tunableop.csv "gemm bf16 tn 4096x16x2048 strict" "gemm f32 nt 25088x4096x64 strict" "gemm f64 nn 5x6x7 strict"
expect aiter.csv "gemm bf16 tn 1536x128x7168 strict"
expect rocblas.csv "gemm f32 nt 128x64x32 strict" "gemm f16 tn 8x9x10x3 strict" "gemm bf16 tn 512x1x2048 strict"
for file in tunableop_results0.csv bf16_tuned_gemm.csv bench.log; do # and as they are they are refused by name
  status=0
  "$COMMAND" show "$file" --db :memory: --device host >output 2>&1 || status=$?
  [ "$status" = 2 ] && grep -q "Workloads from other programs" output || { cat output; exit 1; }
done
