// What a check runs on a GPU. `tools/gpu/compile_kernels.py` makes gpucheck.ptx of it.
//
// No header is included, so that a compiler without a toolkit around it is enough.

typedef unsigned int u32;
typedef unsigned long long u64;

// ---- Memory ----------------------------------------------------------------------------------

// A word that depends on its place and on every bit of the seed (splitmix64).
__device__ __forceinline__ u64 pattern(u64 at, u64 seed) {
    u64 x = at * 0x9e3779b97f4a7c15ull + seed;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

// Writes the pattern, or its inverse where `flip` is all ones.
extern "C" __global__ void fill(u64* words, u64 count, u64 seed, u64 flip) {
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
        words[at] = pattern(at, seed) ^ flip;
    }
}

// Counts the words that are not what `fill` wrote.
extern "C" __global__ void compare_fill(const u64* words, u64 count, u64 seed, u64 flip,
                                        u64* wrong) {
    u64 step = (u64)gridDim.x * blockDim.x;
    u64 found = 0;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
        found += words[at] != (pattern(at, seed) ^ flip);
    }
    if (found) atomicAdd(wrong, found);
}

// Counts the words in which two areas differ.
extern "C" __global__ void compare(const u64* one, const u64* other, u64 count, u64* wrong) {
    u64 step = (u64)gridDim.x * blockDim.x;
    u64 found = 0;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
        found += one[at] != other[at];
    }
    if (found) atomicAdd(wrong, found);
}

// ---- Matrix product --------------------------------------------------------------------------

// C = A * B on the tensor cores: A is M x K and B is N x K (so transposed), both BF16 and row by
// row; C is M x N, FP32. M is a multiple of 128, N of 256, K of 32.
//
// A block of 8 warps makes 128 x 256 of C, each warp 64 x 64. Slices of 32 columns of A and B come
// to shared memory, three ahead of the one in use.

#define TILE_M 128u
#define TILE_N 256u
#define TILE_K 32u
#define STAGES 4u
// In bytes; a row of a slice is 64 bytes, four chunks of 16.
#define A_BYTES (TILE_M * TILE_K * 2)
#define STAGE_BYTES ((TILE_M + TILE_N) * TILE_K * 2)
// So many tiles of rows go through the columns together, so that both stay in the L2 cache.
#define GROUP_M 8u

// Where a chunk lies in a slice: eight rows that are read at once fall on different banks.
__device__ __forceinline__ u32 place(u32 row, u32 chunk) {
    return row * 64 + ((chunk ^ ((row >> 1) & 3)) << 4);
}

__device__ __forceinline__ void copy_chunk(u32 to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
}

__device__ __forceinline__ void load_four(u32* into, u32 from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(into[0]), "=r"(into[1]), "=r"(into[2]), "=r"(into[3])
                 : "r"(from));
}

__device__ __forceinline__ void multiply(float* c, const u32* a, const u32* b) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Asks for one slice; each of the 256 threads brings two chunks of A and four of B.
__device__ __forceinline__ void fetch(u32 stage, const char* a, const char* b, u32 k_bytes) {
    u32 thread = threadIdx.x;
    u32 row = thread >> 2, chunk = thread & 3;
#pragma unroll
    for (u32 i = 0; i < TILE_M / 64; i++) {
        u32 at = row + i * 64;
        copy_chunk(stage + place(at, chunk), a + (u64)at * k_bytes + chunk * 16);
    }
#pragma unroll
    for (u32 i = 0; i < TILE_N / 64; i++) {
        u32 at = row + i * 64;
        copy_chunk(stage + A_BYTES + place(at, chunk), b + (u64)at * k_bytes + chunk * 16);
    }
}

extern "C" __global__ void __launch_bounds__(256, 1)
    product(const char* a, const char* b, float* c, u32 m, u32 n, u32 k) {
    extern __shared__ __align__(128) char shared[];
    u32 base;
    asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(base) : "l"(shared));

    u32 tiles_m = m / TILE_M, tiles_n = n / TILE_N;
    u32 group = blockIdx.x / (GROUP_M * tiles_n);
    u32 rows = min(GROUP_M, tiles_m - group * GROUP_M);
    u32 in_group = blockIdx.x % (GROUP_M * tiles_n);
    u32 tile_m = group * GROUP_M + in_group % rows;
    u32 tile_n = in_group / rows;

    u32 k_bytes = k * 2;
    a += (u64)tile_m * TILE_M * k_bytes;
    b += (u64)tile_n * TILE_N * k_bytes;

    u32 warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    u32 warp_m = (warp & 1) * 64, warp_n = (warp >> 1) * 64;

    float sums[4][8][4];
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 8; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) sums[i][j][e] = 0.0f;

    u32 slices = k / TILE_K;
#pragma unroll
    for (u32 s = 0; s < STAGES - 1; s++) {
        if (s < slices) fetch(base + s * STAGE_BYTES, a + s * 64, b + s * 64, k_bytes);
        asm volatile("cp.async.commit_group;");
    }

    u32 a_row = warp_m + (lane & 15), a_chunk = lane >> 4;
    u32 b_row = warp_n + (lane & 7) + ((lane >> 4) << 3), b_chunk = (lane >> 3) & 1;

    for (u32 s = 0; s < slices; s++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        __syncthreads();
        u32 ahead = s + STAGES - 1;
        if (ahead < slices) {
            u32 into = base + (ahead % STAGES) * STAGE_BYTES;
            fetch(into, a + (u64)ahead * 64, b + (u64)ahead * 64, k_bytes);
        }
        asm volatile("cp.async.commit_group;");

        u32 stage = base + (s % STAGES) * STAGE_BYTES;
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            u32 fa[4][4], fb[4][4];
#pragma unroll
            for (u32 i = 0; i < 4; i++)
                load_four(fa[i], stage + place(a_row + i * 16, half * 2 + a_chunk));
#pragma unroll
            for (u32 j = 0; j < 4; j++)
                load_four(fb[j], stage + A_BYTES + place(b_row + j * 16, half * 2 + b_chunk));
#pragma unroll
            for (u32 i = 0; i < 4; i++)
#pragma unroll
                for (u32 j = 0; j < 8; j++)
                    multiply(sums[i][j], fa[i], &fb[j >> 1][(j & 1) * 2]);
        }
    }

    c += ((u64)tile_m * TILE_M + warp_m) * n + tile_n * TILE_N + warp_n;
#pragma unroll
    for (u32 i = 0; i < 4; i++)
#pragma unroll
        for (u32 j = 0; j < 8; j++) {
            u32 row = i * 16 + (lane >> 2), column = j * 8 + (lane & 3) * 2;
            *(float2*)&c[(u64)row * n + column] = make_float2(sums[i][j][0], sums[i][j][1]);
            *(float2*)&c[(u64)(row + 8) * n + column] = make_float2(sums[i][j][2], sums[i][j][3]);
        }
}
