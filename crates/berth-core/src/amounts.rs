//! Amounts of the resources that queues are measured in: GPUs in total and by model, CPU, memory.

use crate::ix::ModelIx;

/// What something holds or asks for. GPUs in thousandths, CPU in thousandths of a core, memory in
/// bytes. `models` is indexed by model and may be shorter than there are models.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Amounts {
    pub gpu: i64,
    pub cpu: i64,
    pub memory: i64,
    pub models: Vec<i64>,
}

impl Amounts {
    pub fn add(&mut self, other: &Amounts, times: i64) {
        more(&mut self.gpu, other.gpu, times);
        more(&mut self.cpu, other.cpu, times);
        more(&mut self.memory, other.memory, times);
        if self.models.len() < other.models.len() {
            self.models.resize(other.models.len(), 0);
        }
        for (mine, theirs) in self.models.iter_mut().zip(&other.models) {
            more(mine, *theirs, times);
        }
    }

    pub fn charge(&mut self, charge: &Charge, times: i64) {
        self.gpu += charge.gpu * times;
        self.cpu += charge.cpu * times;
        self.memory += charge.memory * times;
        if let Some(model) = charge.model {
            if self.models.len() <= model.at() {
                self.models.resize(model.at() + 1, 0);
            }
            self.models[model.at()] += charge.gpu * times;
        }
    }

    /// Whether several models would do, so that which it will be is open.
    pub fn is_open(&self) -> bool {
        self.models.iter().filter(|gpus| **gpus > 0).count() > 1
    }

    /// The same of one model only.
    pub fn of_model(&self, model: usize) -> Amounts {
        let mut models = vec![0; self.models.len()];
        models[model] = self.models[model];
        Amounts { gpu: self.gpu, cpu: self.cpu, memory: self.memory, models }
    }

    pub fn get(&self, resource: Resource) -> i64 {
        match resource {
            Resource::Gpu => self.gpu,
            Resource::Cpu => self.cpu,
            Resource::Memory => self.memory,
            Resource::Model(model) => self.models.get(model.at()).copied().unwrap_or(0),
        }
    }
}

/// Adds without overflow: a demand beyond all measure stays one.
fn more(sum: &mut i64, amount: i64, times: i64) {
    *sum = sum.saturating_add(amount.saturating_mul(times)).clamp(-UNBOUNDED, UNBOUNDED);
}

/// What one task holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Charge {
    pub gpu: i64,
    pub model: Option<ModelIx>,
    pub cpu: i64,
    pub memory: i64,
}

/// What a quota can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Resource {
    Gpu,
    Cpu,
    Memory,
    Model(ModelIx),
}

/// Bounds per resource; what is not named does not bind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Bounds {
    pub gpu: Option<i64>,
    pub cpu: Option<i64>,
    pub memory: Option<i64>,
    pub models: Vec<(ModelIx, i64)>,
}

impl Bounds {
    pub fn get(&self, resource: Resource) -> Option<i64> {
        match resource {
            Resource::Gpu => self.gpu,
            Resource::Cpu => self.cpu,
            Resource::Memory => self.memory,
            Resource::Model(model) => {
                self.models.iter().find(|(m, _)| *m == model).map(|(_, amount)| *amount)
            }
        }
    }

    pub fn set(&mut self, resource: Resource, amount: i64) {
        match resource {
            Resource::Gpu => self.gpu = Some(amount),
            Resource::Cpu => self.cpu = Some(amount),
            Resource::Memory => self.memory = Some(amount),
            Resource::Model(model) => {
                self.models.retain(|(m, _)| *m != model);
                self.models.push((model, amount));
                self.models.sort();
            }
        }
    }

    pub fn named(&self) -> impl Iterator<Item = (Resource, i64)> + '_ {
        let total =
            [(Resource::Gpu, self.gpu), (Resource::Cpu, self.cpu), (Resource::Memory, self.memory)];
        total
            .into_iter()
            .filter_map(|(resource, amount)| Some((resource, amount?)))
            .chain(self.models.iter().map(|(model, amount)| (Resource::Model(*model), *amount)))
    }

    pub fn is_empty(&self) -> bool {
        self.named().next().is_none()
    }
}

/// An amount that never binds, small enough to be added to without overflow.
pub(crate) const UNBOUNDED: i64 = i64::MAX / 8;
