//! Optimizers: PyTorch's update rules, with its defaults and with a state that can be saved.

use kernels::Team;
use runs::recipe::Rule;
use tch::Tensor;

use crate::error::Result;
use crate::ffi::numbers_mut;

const BETA_1: f64 = 0.9;
const BETA_2: f64 = 0.999;
const EPSILON: f64 = 1e-8;

/// An update rule and its state per weight.
#[derive(Debug)]
pub struct Optimizer {
    rule: Rule,
    weight_decay: f64,
    steps: u64,
    /// State tensors per weight, each of the weight's shape.
    memory: Vec<Vec<Tensor>>,
}

impl Optimizer {
    /// An optimizer with an empty state.
    pub fn new(rule: Rule, weight_decay: f64, parameters: &[Tensor]) -> Self {
        let n_remembered = match rule {
            Rule::Sgd { momentum: 0.0 } => 0,
            Rule::Sgd { .. } => 1,
            Rule::Adam | Rule::AdamW => 2,
        };
        let zeros = |parameter: &Tensor| (0..n_remembered).map(|_| parameter.detach().zeros_like()).collect();
        Self { rule, weight_decay, steps: 0, memory: parameters.iter().map(zeros).collect() }
    }

    /// Updates the weights by their gradients and sets the gradients to 0. A weight whose gradient is an undefined
    /// tensor stays unchanged. With a team, kernels update weights on the CPU in one pass.
    pub fn step(
        &mut self,
        parameters: &[Tensor],
        gradients: &mut [Tensor],
        rate: f64,
        team: Option<&Team>,
    ) -> Result<()> {
        self.steps += 1;
        tch::no_grad(|| {
            for ((parameter, gradient), memory) in parameters.iter().zip(gradients).zip(&mut self.memory) {
                if !gradient.defined() {
                    continue;
                }
                let mut weight = parameter.shallow_clone();
                let change = Change { rule: self.rule, decay: self.weight_decay, steps: self.steps, rate };
                if !team.is_some_and(|team| change.by_kernels(team, &mut weight, gradient, memory)) {
                    change.by_pytorch(&mut weight, gradient, memory)?;
                    let _ = gradient.f_zero_()?;
                }
            }
            Ok(())
        })
    }

    /// Names of the state tensors, derived from the names of the weights.
    pub fn names(&self, parameters: &[String]) -> Vec<String> {
        let of_rule: &[&str] = match self.rule {
            Rule::Sgd { .. } => &["momentum_buffer"],
            Rule::Adam | Rule::AdamW => &["exp_avg", "exp_avg_sq"],
        };
        let n_remembered = self.memory.first().map_or(0, Vec::len);
        parameters
            .iter()
            .flat_map(|name| of_rule[..n_remembered].iter().map(move |kind| format!("{name}.{kind}")))
            .collect()
    }

    /// The state tensors, in the order of [`Optimizer::names`].
    pub fn tensors(&self) -> Vec<Tensor> {
        self.memory.iter().flatten().map(Tensor::shallow_clone).collect()
    }

    /// Number of steps.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Restores a saved state.
    pub fn restore(&mut self, steps: u64, tensors: &[Tensor]) -> Result<()> {
        self.steps = steps;
        tch::no_grad(|| {
            for (remembered, saved) in self.memory.iter_mut().flatten().zip(tensors) {
                remembered.f_copy_(saved)?;
            }
            Ok(())
        })
    }
}

/// The update of one weight in one step.
struct Change {
    rule: Rule,
    decay: f64,
    /// Number of steps, including this one.
    steps: u64,
    rate: f64,
}

impl Change {
    /// 1 - β^t for both moments.
    fn corrections(&self) -> (f64, f64) {
        let steps = i32::try_from(self.steps).unwrap_or(i32::MAX);
        (1.0 - BETA_1.powi(steps), 1.0 - BETA_2.powi(steps))
    }

    /// Updates with a kernel and sets the gradient to 0. Returns whether a kernel exists for the tensors.
    fn by_kernels(
        &self,
        team: &Team,
        weight: &mut Tensor,
        gradient: &mut Tensor,
        memory: &mut [Tensor],
    ) -> bool {
        let (Some(weights), Some(gradients)) = (numbers_mut(weight), numbers_mut(gradient)) else {
            return false;
        };
        let Some(mut memory) = memory.iter_mut().map(numbers_mut).collect::<Option<Vec<_>>>() else {
            return false;
        };
        match (self.rule, &mut memory[..]) {
            (Rule::Sgd { momentum }, [velocity]) => {
                let rule = kernels::Sgd {
                    decay: self.decay as f32,
                    momentum: momentum as f32,
                    rate: self.rate as f32,
                };
                kernels::sgd(team, weights, gradients, velocity, &rule);
                true
            }
            (Rule::Adam | Rule::AdamW, [mean, square]) => {
                let (correction_1, correction_2) = self.corrections();
                let is_beside = self.rule == Rule::AdamW;
                let rule = kernels::Adam {
                    shrink: if is_beside { (1.0 - self.rate * self.decay) as f32 } else { 1.0 },
                    decay: if is_beside { 0.0 } else { self.decay as f32 },
                    beta_1: BETA_1 as f32,
                    beta_2: BETA_2 as f32,
                    rate: (self.rate / correction_1) as f32,
                    root: correction_2.sqrt() as f32,
                    epsilon: EPSILON as f32,
                };
                kernels::adam(team, weights, gradients, [mean, square], &rule);
                true
            }
            _ => false,
        }
    }

    fn by_pytorch(&self, weight: &mut Tensor, gradient: &Tensor, memory: &mut [Tensor]) -> Result<()> {
        let rate = self.rate;
        let decayed = |weight: &Tensor| -> Result<Tensor> {
            if self.decay == 0.0 {
                return Ok(gradient.shallow_clone());
            }
            Ok(gradient.f_add(&(weight * self.decay))?)
        };
        match self.rule {
            Rule::Sgd { .. } if memory.is_empty() => {
                let _ = weight.f_add_(&(decayed(weight)? * -rate))?;
            }
            Rule::Sgd { momentum } => {
                let velocity = &mut memory[0];
                let _ = velocity.f_mul_scalar_(momentum)?.f_add_(&decayed(weight)?)?;
                let _ = weight.f_add_(&(&*velocity * -rate))?;
            }
            Rule::Adam => self.adam(weight, &decayed(weight)?, memory)?,
            Rule::AdamW => {
                if self.decay > 0.0 {
                    let _ = weight.f_mul_scalar_(1.0 - rate * self.decay)?;
                }
                self.adam(weight, gradient, memory)?;
            }
        }
        Ok(())
    }

    fn adam(&self, weight: &mut Tensor, gradient: &Tensor, memory: &mut [Tensor]) -> Result<()> {
        let [mean, square] = memory else { unreachable!("Adam remembers two tensors of each weight") };
        let (correction_1, correction_2) = self.corrections();
        let _ = mean.f_lerp_(gradient, 1.0 - BETA_1)?;
        let _ = square.f_mul_scalar_(BETA_2)?.f_addcmul_(gradient, &(gradient * (1.0 - BETA_2)))?;
        let mut divisor = square.f_sqrt()?;
        let _ = divisor.f_div_scalar_(correction_2.sqrt())?.f_add_scalar_(EPSILON)?;
        let _ = weight.f_addcdiv_(&(&*mean * (-self.rate / correction_1)), &divisor)?;
        Ok(())
    }
}

/// Scales all gradients so that their joint Euclidean norm is at most `norm_max`. Returns the norm before scaling.
pub fn clip(gradients: &mut [Tensor], norm_max: f64) -> Result<f64> {
    tch::no_grad(|| {
        let mut squares = 0.0;
        for gradient in gradients.iter().filter(|gradient| gradient.defined()) {
            squares += gradient.f_square()?.f_sum(tch::Kind::Double)?.f_double_value(&[])?;
        }
        let norm = squares.sqrt();
        if norm > norm_max {
            // PyTorch's constant against division by zero.
            let factor = norm_max / (norm + 1e-6);
            for gradient in gradients.iter_mut().filter(|gradient| gradient.defined()) {
                let _ = gradient.f_mul_scalar_(factor)?;
            }
        }
        Ok(norm)
    })
}

#[cfg(test)]
mod tests {
    use kernels::Processor;
    use tch::{Device, Kind};

    use super::*;

    /// Weights after some steps with different gradients, one of which is zero.
    fn after_steps(rule: Rule, decay: f64, team: Option<&Team>) -> Tensor {
        let weights = [(Tensor::arange(45, (Kind::Float, Device::Cpu)) - 20.0).view([9, 5]) / 7.0];
        let mut optimizer = Optimizer::new(rule, decay, &weights);
        for step in 0..7i64 {
            let mut gradients = [((&weights[0] * 3.0).sin() + step as f64 * 0.1) * ((step + 1) % 3)];
            optimizer.step(&weights, &mut gradients, 0.01, team).unwrap();
            assert_eq!(gradients[0].abs().max().double_value(&[]), 0.0);
        }
        weights[0].shallow_clone()
    }

    #[test]
    fn kernels_change_weights_as_pytorch_does() {
        for rule in [Rule::Sgd { momentum: 0.0 }, Rule::Sgd { momentum: 0.9 }, Rule::Adam, Rule::AdamW] {
            for decay in [0.0, 0.1] {
                let expected = after_steps(rule, decay, None);
                for processor in Processor::all() {
                    let team = Team::new(2, processor).unwrap();
                    let found = after_steps(rule, decay, Some(&team));
                    let difference = (&found - &expected).abs().max().double_value(&[]);
                    assert!(difference < 2e-6, "{rule:?} {decay} {processor:?}: {difference:e}");
                }
            }
        }
    }
}
