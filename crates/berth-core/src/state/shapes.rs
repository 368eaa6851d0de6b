//! The shapes of requests, one for all jobs that ask for the same.

use crate::ix::{JobIx, ModelIx, QueueIx, ShapeIx};
use crate::shape::leaf::Leaf;
use crate::shape::{ModelFacts, Shape, ShapeKey};
use crate::state::State;
use berth_model::{GroupSpec, Lifecycle, Name};
use std::sync::Arc;

impl State {
    pub(crate) fn model_facts(&self) -> ModelFacts {
        let models = &self.cluster.models;
        ModelFacts {
            efficiency: models.iter().map(|model| self.models.efficiency(model)).collect(),
            speed: models.iter().map(|model| self.models.speed(model)).collect(),
        }
    }

    /// The shape of a request, counted as used once more.
    pub(crate) fn intern_shape(
        &mut self,
        groups: &[GroupSpec],
        lifecycle: Option<Lifecycle>,
        queue: QueueIx,
    ) -> ShapeIx {
        let key = ShapeKey::of(groups, lifecycle, Some(queue));
        if let Some(ix) = self.shape_by_key.get(&key) {
            Arc::make_mut(&mut self.shapes[ix.at()]).uses += 1;
            return *ix;
        }
        let known = self.model_facts();
        let mut shape = Shape::new(key.clone(), &mut self.cluster, &self.policy, &known);
        shape.uses = 1;
        let shape = Arc::new(shape);
        let ix = match self.free_shapes.pop() {
            Some(ix) => {
                self.shapes[ix.at()] = shape;
                ix
            }
            None => {
                self.shapes.push(shape);
                ShapeIx(self.shapes.len() as u32 - 1)
            }
        };
        self.shape_by_key.insert(key, ix);
        ix
    }

    /// Finds the shape anew for a job of which what makes a shape has changed. It must not stand in
    /// line.
    pub(crate) fn reshape(&mut self, ix: JobIx) {
        let job = self.jobs.get(ix);
        let (spec, queue, before) = (job.spec.clone(), job.queue, job.shape);
        let shape = self.intern_shape(&spec.groups, spec.lifecycle, queue);
        self.jobs.get_mut(ix).shape = shape;
        self.drop_shape(before);
    }

    pub(crate) fn drop_shape(&mut self, ix: ShapeIx) {
        let shape = Arc::make_mut(&mut self.shapes[ix.at()]);
        shape.uses -= 1;
        if shape.uses == 0 {
            self.shape_by_key.remove(&shape.key);
            self.free_shapes.push(ix);
        }
    }

    /// Brings what depends on classes of nodes and on capacity up to date; changes no meaning.
    pub(crate) fn refresh(&mut self) {
        let version = self.cluster.version;
        self.queues.resolve(&self.cluster);
        if self.shapes.iter().all(|shape| shape.uses == 0 || shape.version == version) {
            return;
        }
        let known = self.model_facts();
        for at in 0..self.shapes.len() {
            if self.shapes[at].uses == 0 || self.shapes[at].version == version {
                continue;
            }
            let mut shape = (*self.shapes[at]).clone();
            shape.refresh(&self.cluster, &self.policy, &known);
            // A share by memory may be of another size now, and jobs stand in line by size.
            let resized = shape.amounts.gpu != self.shapes[at].amounts.gpu;
            let enqueued: Vec<JobIx> =
                if resized { self.pending_of_shape(ShapeIx(at as u32)) } else { Vec::new() };
            for job in &enqueued {
                self.dequeue(*job);
            }
            self.shapes[at] = Arc::new(shape);
            for job in enqueued {
                self.enqueue(job);
            }
        }
    }

    /// The jobs of a shape that are in line.
    fn pending_of_shape(&self, shape: ShapeIx) -> Vec<JobIx> {
        let lines = self.queues.all.iter().filter_map(|queue| queue.pending.shapes.get(&shape));
        let jobs = lines.flat_map(|line| line.lists.values()).flatten();
        jobs.map(|(_, _, job)| *job).collect()
    }

    pub(crate) fn shape_of(&self, job: JobIx) -> &Shape {
        &self.shapes[self.jobs.get(job).shape.at()]
    }

    pub(crate) fn leaf_of(&self, job: JobIx, task: u32) -> &Leaf {
        let shape = self.shape_of(job);
        &shape.leaves[shape.leaf_of(task)]
    }

    pub(crate) fn model_name(&self, model: ModelIx) -> &Name {
        &self.cluster.models[model.at()]
    }
}
