//! The CUDA driver, as far as a check needs it: one GPU, and the kernels of `kernels/gpucheck.cu`.
//! The only `unsafe` code of the workspace is here: what a kernel does with its arguments is beyond
//! what the compiler sees, so each kernel is a function of its own that keeps to its bounds.

#![expect(unsafe_code, reason = "a kernel is started through the driver's interface")]

use cudarc::driver::sys::{CUevent_flags, CUfunction_attribute, is_culib_present};
use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaSlice, CudaStream, CudaViewMut, DriverError,
    LaunchConfig, PinnedHostSlice, PushKernelArg,
};
use cudarc::nvrtc::Ptx;
use std::sync::Arc;

const KERNELS: &str = include_str!("../kernels/gpucheck.ptx");
const THREADS: u32 = 256;
/// What `product` needs of shared memory, and its tile: all as in the source.
const SHARED_BYTES: u32 = 4 * (128 + 256) * 32 * 2;
pub(crate) const TILE: Shape = Shape { m: 128, n: 256, k: 32 };

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the CUDA driver is not there: libcuda.so.1 cannot be loaded")]
    NoDriver,
    #[error("{doing}: {}", words(*error))]
    Driver { doing: &'static str, error: DriverError },
    #[error("{doing}: {bytes} bytes are too few")]
    TooSmall { doing: &'static str, bytes: usize },
}

/// `CUDA_ERROR_ECC_UNCORRECTABLE (uncorrectable ECC error encountered)`.
fn words(error: DriverError) -> String {
    let text = |found: Result<&std::ffi::CStr, DriverError>| {
        found.map_or_else(|_| "unknown".to_owned(), |text| text.to_string_lossy().into_owned())
    };
    format!("{} ({})", text(error.error_name()), text(error.error_string()))
}

/// Says what was being done.
pub trait Doing<T> {
    fn doing(self, doing: &'static str) -> Result<T, Error>;
}

impl<T> Doing<T> for Result<T, DriverError> {
    fn doing(self, doing: &'static str) -> Result<T, Error> {
        self.map_err(|error| Error::Driver { doing, error })
    }
}

/// The sizes of a product: `m` by `k` times `k` by `n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub m: usize,
    pub n: usize,
    pub k: usize,
}

/// One GPU that the driver shows to this process.
pub struct Gpu {
    context: Arc<CudaContext>,
    pub stream: Arc<CudaStream>,
    fill: CudaFunction,
    compare_fill: CudaFunction,
    compare: CudaFunction,
    /// Nothing on GPUs before the A100: their tensor cores know no BF16.
    product: Option<CudaFunction>,
    blocks: u32,
}

impl Gpu {
    /// The first that is shown: the caller has named it in `CUDA_VISIBLE_DEVICES`.
    pub fn open() -> Result<Gpu, Error> {
        // SAFETY: loads the library and lets go of it; what it runs while it is loaded is the
        // driver's own code, which is what this process is for.
        if !unsafe { is_culib_present() } {
            return Err(Error::NoDriver);
        }
        let context = CudaContext::new(0).doing("opening the GPU")?;
        let stream = context.new_stream().doing("opening the GPU")?;
        let (major, _) = context.compute_capability().doing("asking what the GPU is")?;
        let processors =
            cudarc::driver::sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        let processors = context.attribute(processors).doing("asking what the GPU is")?;
        let text = if major >= 8 { KERNELS.to_owned() } else { without_product() };
        let module = context.load_module(Ptx::from_src(text)).doing("compiling the kernels")?;
        let load = |name| module.load_function(name).doing("finding the kernels");
        let product = (major >= 8).then(|| load("product")).transpose()?;
        if let Some(product) = &product {
            let shared = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            product.set_attribute(shared, SHARED_BYTES as i32).doing("reserving shared memory")?;
        }
        Ok(Gpu {
            fill: load("fill")?,
            compare_fill: load("compare_fill")?,
            compare: load("compare")?,
            product,
            blocks: u32::try_from(processors).unwrap_or(1).max(1) * 8,
            stream,
            context,
        })
    }

    pub fn name(&self) -> Option<String> {
        self.context.name().ok()
    }

    pub fn multiplies(&self) -> bool {
        self.product.is_some()
    }

    /// Bytes that are free and bytes in all.
    pub fn memory(&self) -> Result<(usize, usize), Error> {
        self.context.mem_get_info().doing("asking how much memory is free")
    }

    pub fn zeros<T: cudarc::driver::DeviceRepr + cudarc::driver::ValidAsZeroBits>(
        &self,
        count: usize,
    ) -> Result<CudaSlice<T>, Error> {
        self.stream.alloc_zeros(count).doing("reserving memory on the GPU")
    }

    /// Memory of the machine that the GPU reads and writes by itself.
    pub fn pinned(&self, bytes: usize) -> Result<PinnedHostSlice<u8>, Error> {
        // SAFETY: the memory is not set by the driver; it is set here before anybody sees it.
        let reserved = unsafe { self.context.alloc_pinned_with_flags::<u8>(bytes, 0) };
        let mut memory = reserved.doing("reserving pinned memory")?;
        memory.as_mut_slice().doing("reserving pinned memory")?.fill(0);
        Ok(memory)
    }

    pub fn mark(&self) -> Result<CudaEvent, Error> {
        let flags = Some(CUevent_flags::CU_EVENT_BLOCKING_SYNC);
        self.stream.record_event(flags).doing("marking the time")
    }

    pub fn wait(&self) -> Result<(), Error> {
        self.stream.synchronize().doing("waiting for the GPU")
    }

    fn spread(&self) -> LaunchConfig {
        LaunchConfig {
            grid_dim: (self.blocks, 1, 1),
            block_dim: (THREADS, 1, 1),
            shared_mem_bytes: 0,
        }
    }

    /// Writes a pattern into the words.
    pub fn fill(
        &self,
        words: &mut CudaViewMut<'_, u64>,
        seed: u64,
        flip: u64,
    ) -> Result<(), Error> {
        let count = words.len() as u64;
        let mut launch = self.stream.launch_builder(&self.fill);
        launch.arg(words).arg(&count).arg(&seed).arg(&flip);
        // SAFETY: the arguments are those of the kernel in their order, and it writes `count`
        // words from the start of `words`, which has as many.
        unsafe { launch.launch(self.spread()) }.doing("writing a pattern").map(drop)
    }

    /// Adds to `wrong` how many words are not as `fill` wrote them.
    pub fn compare_fill(
        &self,
        words: &CudaViewMut<'_, u64>,
        seed: u64,
        flip: u64,
        wrong: &mut CudaSlice<u64>,
    ) -> Result<(), Error> {
        let count = words.len() as u64;
        let words = words.as_view();
        let mut launch = self.stream.launch_builder(&self.compare_fill);
        launch.arg(&words).arg(&count).arg(&seed).arg(&flip).arg(wrong);
        // SAFETY: the arguments are those of the kernel in their order; it reads `count` words
        // from the start of `words`, which has as many, and adds to the first word of `wrong`.
        unsafe { launch.launch(self.spread()) }.doing("comparing memory").map(drop)
    }

    /// Adds to `wrong` in how many words two areas of one size differ.
    pub fn compare(
        &self,
        one: &CudaSlice<u64>,
        other: &CudaSlice<u64>,
        wrong: &mut CudaSlice<u64>,
    ) -> Result<(), Error> {
        let count = one.len().min(other.len()) as u64;
        let mut launch = self.stream.launch_builder(&self.compare);
        launch.arg(one).arg(other).arg(&count).arg(wrong);
        // SAFETY: the arguments are those of the kernel in their order; it reads `count` words
        // from the start of both, which have as many, and adds to the first word of `wrong`.
        unsafe { launch.launch(self.spread()) }.doing("comparing results").map(drop)
    }

    /// `into = a * b`: BF16 in `a` (by rows) and `b` (by columns), FP32 by rows in `into`, where
    /// each word of 64 bits holds two.
    pub fn product(
        &self,
        a: &CudaSlice<u8>,
        b: &CudaSlice<u8>,
        into: &mut CudaSlice<u64>,
        shape: Shape,
    ) -> Result<(), Error> {
        let Shape { m, n, k } = shape;
        let doing = "multiplying matrices";
        let Some(product) = &self.product else {
            return Err(Error::TooSmall { doing, bytes: 0 });
        };
        let whole = m % TILE.m == 0 && n % TILE.n == 0 && k % TILE.k == 0;
        let fits = a.len() >= m * k * 2 && b.len() >= n * k * 2 && into.len() * 2 >= m * n;
        if !whole || !fits {
            return Err(Error::TooSmall { doing, bytes: into.len() * 8 });
        }
        let small = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
        let sizes = (small(m), small(n), small(k));
        let mut launch = self.stream.launch_builder(product);
        launch.arg(a).arg(b).arg(into).arg(&sizes.0).arg(&sizes.1).arg(&sizes.2);
        let blocks = small((m / TILE.m) * (n / TILE.n));
        let config = LaunchConfig {
            grid_dim: (blocks, 1, 1),
            block_dim: (THREADS, 1, 1),
            shared_mem_bytes: SHARED_BYTES,
        };
        // SAFETY: the arguments are those of the kernel in their order. The sizes are whole tiles,
        // one block for each tile of the result, and the three areas are as large as they say.
        unsafe { launch.launch(config) }.doing(doing).map(drop)
    }
}

/// What GPUs before the A100 can compile: everything up to the product, for the oldest of them.
fn without_product() -> String {
    let end = KERNELS.find("\t// .globl\tproduct").unwrap_or(KERNELS.len());
    KERNELS[..end].replacen(".target sm_80", ".target sm_60", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_are_for_the_a100_and_for_every_driver_since_520() {
        assert!(KERNELS.contains("\n.version 7.8\n.target sm_80\n"), "{}", &KERNELS[..400]);
        for name in ["fill", "compare_fill", "compare", "product"] {
            assert!(KERNELS.contains(&format!(".visible .entry {name}(")), "{name}");
        }
    }

    #[test]
    fn older_gpus_get_the_kernels_without_the_product() {
        let text = without_product();
        assert!(text.contains(".target sm_60") && text.contains(".entry compare("), "{text}");
        assert!(!text.contains("mma.sync") && text.trim_end().ends_with('}'));
    }
}
