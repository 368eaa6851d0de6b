//! Dense ordinals. Names and ids are looked up once, at the edge; inside the core everything is a
//! place in a vector. No ordering that a plan depends on may use an ordinal, except that of nodes,
//! which is the order they joined in.

macro_rules! ordinal {
    ($($name:ident),*) => {$(
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) struct $name(pub u32);
        impl $name {
            pub(crate) const fn at(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ordinal!(NodeIx, JobIx, QueueIx, ShapeIx, ClassIx, ModelIx, DomainIx);

/// One task of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TaskIx {
    pub job: JobIx,
    pub task: u32,
}
