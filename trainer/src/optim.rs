//! Optimizers: PyTorch's update rules, with its defaults and with a state that can be saved.

use kernels::{Adam, Team};
use runs::recipe::Rule;
use tch::{Device, Kind, Tensor};

use crate::error::Result;
use crate::ffi::numbers_mut;

/// β of the first and of the second moment.
const BETAS: [f64; 2] = [0.9, 0.999];
const EPSILON: f64 = 1e-8;
/// Of LAMB, whose changes are divided by their norm.
const LAMB_EPSILON: f64 = 1e-6;
/// Ratio of the norms of a change and of its weight at a rate of 1, in LARS.
const TRUST: f64 = 0.001;

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
    pub fn new(rule: Rule, weight_decay: f64, parameters: &[Tensor]) -> Result<Self> {
        let n_remembered = match rule {
            Rule::Sgd { momentum: 0.0 } | Rule::Lars { momentum: 0.0 } => 0,
            Rule::Sgd { .. } | Rule::Lars { .. } => 1,
            Rule::Adam | Rule::AdamW | Rule::Lamb => 2,
        };
        let zeros = |parameter: &Tensor| -> Result<Vec<Tensor>> {
            (0..n_remembered).map(|_| Ok(parameter.detach().f_zeros_like()?)).collect()
        };
        let memory = parameters.iter().map(zeros).collect::<Result<_>>()?;
        Ok(Self { rule, weight_decay, steps: 0, memory })
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
            Rule::Sgd { .. } | Rule::Lars { .. } => &["momentum_buffer"],
            Rule::Adam | Rule::AdamW | Rule::Lamb => &["exp_avg", "exp_avg_sq"],
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
                let step = Adam::at(self.steps, self.rate, BETAS);
                let rule = match self.rule {
                    Rule::AdamW => Adam { shrink: (1.0 - self.rate * self.decay) as f32, ..step },
                    _ => Adam { decay: self.decay as f32, ..step },
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
            Ok(gradient.f_add(&weight.f_mul_scalar(self.decay)?)?)
        };
        match self.rule {
            Rule::Sgd { momentum } => {
                let moved = moved(memory, momentum, decayed(weight)?)?;
                let _ = weight.f_add_(&moved.f_mul_scalar(-rate)?)?;
            }
            Rule::Lars { momentum } => {
                let (by, mut gradient) = (gradient, decayed(weight)?);
                if is_scaled(weight) {
                    let of_weight = norm(weight)?;
                    let decay = of_weight.f_mul_scalar(self.decay)?;
                    let norms = norm(by)?.f_add(&decay)?;
                    gradient = gradient.f_mul(&trust(&of_weight.f_mul_scalar(TRUST)?, &norms)?)?;
                }
                let _ = weight.f_add_(&moved(memory, momentum, gradient)?.f_mul_scalar(-rate)?)?;
            }
            Rule::Adam => {
                let (mean, divisor, correction) = self.adam(&decayed(weight)?, memory, EPSILON)?;
                let _ = weight.f_addcdiv_(&mean.f_mul_scalar(-rate / correction)?, &divisor)?;
            }
            Rule::AdamW => {
                if self.decay > 0.0 {
                    let _ = weight.f_mul_scalar_(1.0 - rate * self.decay)?;
                }
                let (mean, divisor, correction) = self.adam(gradient, memory, EPSILON)?;
                let _ = weight.f_addcdiv_(&mean.f_mul_scalar(-rate / correction)?, &divisor)?;
            }
            Rule::Lamb => {
                let (mean, divisor, correction) = self.adam(gradient, memory, LAMB_EPSILON)?;
                let mut change = mean.f_div(&divisor.f_mul_scalar(correction)?)?;
                let _ = change.f_add_(&weight.f_mul_scalar(self.decay)?)?;
                if is_scaled(weight) {
                    change = change.f_mul(&trust(&norm(weight)?, &norm(&change)?)?)?;
                }
                let _ = weight.f_add_(&change.f_mul_scalar_(-rate)?)?;
            }
        }
        Ok(())
    }

    /// Updates the moments. Returns the mean, the root of the corrected mean square plus ε, and the correction by which
    /// the mean is divided.
    fn adam(&self, gradient: &Tensor, memory: &mut [Tensor], epsilon: f64) -> Result<(Tensor, Tensor, f64)> {
        let [mean, square] = memory else { unreachable!("Adam remembers two tensors of each weight") };
        let [beta_1, beta_2] = BETAS;
        let [correction_1, correction_2] = Adam::corrections(self.steps, BETAS);
        let _ = mean.f_lerp_(gradient, 1.0 - beta_1)?;
        let _ = square.f_mul_scalar_(beta_2)?.f_addcmul_(gradient, &gradient.f_mul_scalar(1.0 - beta_2)?)?;
        let mut divisor = square.f_sqrt()?;
        let _ = divisor.f_div_scalar_(correction_2.sqrt())?.f_add_scalar_(epsilon)?;
        Ok((mean.shallow_clone(), divisor, correction_1))
    }
}

/// The velocity after a step; without momentum, the gradient.
fn moved(memory: &mut [Tensor], momentum: f64, gradient: Tensor) -> Result<Tensor> {
    let Some(velocity) = memory.first_mut() else { return Ok(gradient) };
    Ok(velocity.f_mul_scalar_(momentum)?.f_add_(&gradient)?)
}

/// The Euclidean norm, on the tensor's device: the host does not wait for it.
fn norm(tensor: &Tensor) -> Result<Tensor> {
    Ok(tensor.f_square()?.f_sum(Kind::Double)?.f_sqrt()?)
}

/// The factor by which LARS and LAMB scale a change: the ratio of two norms, or 1 if one of them is 0.
fn trust(weight: &Tensor, change: &Tensor) -> Result<Tensor> {
    let ratio = weight.f_div(change)?;
    let is_ratio = ratio.f_isfinite()?.f_logical_and(&ratio.f_gt(0.0)?)?;
    Ok(ratio.f_where_scalarother(&is_ratio, 1.0)?)
}

/// Whether LARS and LAMB scale the change of a weight: they scale those of matrices.
fn is_scaled(weight: &Tensor) -> bool {
    weight.dim() > 1
}

/// Scales all gradients so that their joint Euclidean norm is at most `norm_max`. Returns the norm before scaling,
/// a 64-bit number on their device.
pub fn clip(gradients: &mut [Tensor], norm_max: f64) -> Result<Tensor> {
    tch::no_grad(|| {
        let defined = gradients.iter().filter(|gradient| gradient.defined());
        let squares = defined.map(|gradient| Ok(gradient.f_square()?.f_sum(Kind::Double)?));
        let squares = squares.collect::<Result<Vec<_>>>()?;
        if squares.is_empty() {
            return Ok(Tensor::from(0.0));
        }
        let norm = Tensor::f_stack(&squares, 0)?.f_sum(Kind::Double)?.f_sqrt()?;
        // A GPU multiplies by 1, because the host would have to wait for the norm.
        if norm.device() == Device::Cpu && norm.f_double_value(&[])? <= norm_max {
            return Ok(norm);
        }
        // PyTorch's constant against division by zero.
        let factor = norm.f_full_like(norm_max)?.f_div(&norm.f_add_scalar(1e-6)?)?.f_clamp_max(1.0)?;
        for gradient in gradients.iter_mut().filter(|gradient| gradient.defined()) {
            let _ = gradient.f_mul_(&factor)?;
        }
        Ok(norm)
    })
}

#[cfg(test)]
mod tests {
    use kernels::Processor;

    use super::*;

    /// Weights after some steps with different gradients, one of which is zero.
    fn after_steps(rule: Rule, decay: f64, team: Option<&Team>) -> Tensor {
        let weights = [(Tensor::arange(45, (Kind::Float, Device::Cpu)) - 20.0).view([9, 5]) / 7.0];
        let mut optimizer = Optimizer::new(rule, decay, &weights).unwrap();
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
                    let team = Team::new(2, processor);
                    let found = after_steps(rule, decay, Some(&team));
                    let difference = (&found - &expected).abs().max().double_value(&[]);
                    assert!(difference < 2e-6, "{rule:?} {decay} {processor:?}: {difference:e}");
                }
            }
        }
    }

    /// The formulas of the papers, for a weight without zeros.
    #[test]
    fn large_batch_rules_scale_changes_by_the_norm_of_the_weight() {
        let weight = || Tensor::from_slice(&[3.0_f64, -4.0]).view([1, 2]);
        let step = |rule, decay: f64, gradient: [f64; 2]| {
            let weights = [weight()];
            let mut optimizer = Optimizer::new(rule, decay, &weights).unwrap();
            optimizer.step(&weights, &mut [Tensor::from_slice(&gradient).view([1, 2])], 0.5, None).unwrap();
            Vec::<f64>::try_from((weight() - &weights[0]).view([2])).unwrap()
        };
        let is_near = |found: &[f64], expected: [f64; 2]| {
            found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-9)
        };
        // ‖w‖ = 5, ‖g‖ = 10: λ = 0.001 · 5 / (10 + 0.1 · 5).
        let lambda = 0.001 * 5.0 / 10.5;
        let found = step(Rule::Lars { momentum: 0.9 }, 0.1, [6.0, 8.0]);
        assert!(is_near(&found, [0.5 * lambda * 6.3, 0.5 * lambda * 7.6]), "{found:?}");
        // The first change of Adam is the sign of the gradient, so its norm is that of (1, 1).
        let found = step(Rule::Lamb, 0.0, [6e3, 8e3]);
        assert!(is_near(&found, [0.5 * 5.0 / 2.0_f64.sqrt(); 2]), "{found:?}");
        let [one, other] = [1.0 + 0.1 * 3.0, 1.0 - 0.1 * 4.0];
        let ratio = 5.0 / f64::hypot(one, other);
        let found = step(Rule::Lamb, 0.1, [6e3, 8e3]);
        assert!(is_near(&found, [0.5 * ratio * one, 0.5 * ratio * other]), "{found:?}");
    }

    #[test]
    fn large_batch_rules_change_biases_and_zeros_without_a_ratio() {
        for (rule, expected) in [(Rule::Lars { momentum: 0.0 }, 3.0), (Rule::Lamb, 0.5)] {
            for weight in [Tensor::from_slice(&[3.0_f64]), Tensor::from_slice(&[0.0_f64]).view([1, 1])] {
                let before = weight.copy();
                let gradient = Tensor::full(weight.size(), 6.0, (Kind::Double, Device::Cpu));
                let mut optimizer = Optimizer::new(rule, 0.0, std::slice::from_ref(&weight)).unwrap();
                optimizer.step(std::slice::from_ref(&weight), &mut [gradient], 0.5, None).unwrap();
                let change = (before - weight).sum(Kind::Double).double_value(&[]);
                assert!((change - expected).abs() < 1e-6, "{rule:?} {change}");
            }
        }
    }
}
