//! The rules by which gradients change weights: PyTorch's, with its defaults, and with a state that can be saved.

use serde::{Deserialize, Serialize};
use tch::Tensor;

use crate::error::Result;

/// How a gradient becomes a change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// v = momentum v + g; w -= rate v. Weight decay adds decay w to g.
    Sgd {
        /// 0: none.
        momentum: f64,
    },
    /// Kingma & Ba 2015, with β = (0.9, 0.999), ε = 1e-8. Weight decay adds decay w to g.
    Adam,
    /// Loshchilov & Hutter 2019: as Adam, but weight decay takes rate · decay w from w, beside the gradient.
    AdamW,
}

const BETA_1: f64 = 0.9;
const BETA_2: f64 = 0.999;
const EPSILON: f64 = 1e-8;

/// A rule and what it remembers of each weight.
#[derive(Debug)]
pub struct Optimizer {
    rule: Rule,
    weight_decay: f64,
    steps: u64,
    /// For each weight, as many tensors of its shape as the rule remembers.
    memory: Vec<Vec<Tensor>>,
}

impl Optimizer {
    /// An optimizer that has seen nothing.
    pub fn new(rule: Rule, weight_decay: f64, parameters: &[Tensor]) -> Self {
        let n_remembered = match rule {
            Rule::Sgd { momentum: 0.0 } => 0,
            Rule::Sgd { .. } => 1,
            Rule::Adam | Rule::AdamW => 2,
        };
        let zeros = |parameter: &Tensor| (0..n_remembered).map(|_| parameter.detach().zeros_like()).collect();
        Self { rule, weight_decay, steps: 0, memory: parameters.iter().map(zeros).collect() }
    }

    /// Changes the weights by their gradients. A weight without a gradient stays.
    pub fn step(&mut self, parameters: &[Tensor], rate: f64) -> Result<()> {
        self.steps += 1;
        tch::no_grad(|| {
            for (parameter, memory) in parameters.iter().zip(&mut self.memory) {
                let gradient = parameter.grad();
                if gradient.defined() {
                    let mut weight = parameter.shallow_clone();
                    change(self.rule, self.weight_decay, self.steps, &mut weight, &gradient, memory, rate)?;
                }
            }
            Ok(())
        })
    }

    /// Names for what it remembers of the weights with these names.
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

    /// What it remembers, in the order of [`Optimizer::names`].
    pub fn tensors(&self) -> Vec<Tensor> {
        self.memory.iter().flatten().map(Tensor::shallow_clone).collect()
    }

    /// The steps it has made.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Goes on from what was saved.
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

fn change(
    rule: Rule,
    weight_decay: f64,
    steps: u64,
    weight: &mut Tensor,
    gradient: &Tensor,
    memory: &mut [Tensor],
    rate: f64,
) -> Result<()> {
    let decayed = |weight: &Tensor| -> Result<Tensor> {
        if weight_decay == 0.0 {
            return Ok(gradient.shallow_clone());
        }
        Ok(gradient.f_add(&(weight * weight_decay))?)
    };
    match rule {
        Rule::Sgd { .. } if memory.is_empty() => {
            let _ = weight.f_add_(&(decayed(weight)? * -rate))?;
        }
        Rule::Sgd { momentum } => {
            let velocity = &mut memory[0];
            let _ = velocity.f_mul_scalar_(momentum)?.f_add_(&decayed(weight)?)?;
            let _ = weight.f_add_(&(&*velocity * -rate))?;
        }
        Rule::Adam => adam(weight, &decayed(weight)?, memory, steps, rate)?,
        Rule::AdamW => {
            if weight_decay > 0.0 {
                let _ = weight.f_mul_scalar_(1.0 - rate * weight_decay)?;
            }
            adam(weight, gradient, memory, steps, rate)?;
        }
    }
    Ok(())
}

fn adam(weight: &mut Tensor, gradient: &Tensor, memory: &mut [Tensor], steps: u64, rate: f64) -> Result<()> {
    let [mean, square] = memory else { unreachable!("Adam remembers two tensors of each weight") };
    let steps = i32::try_from(steps).unwrap_or(i32::MAX);
    let (correction_1, correction_2) = (1.0 - BETA_1.powi(steps), 1.0 - BETA_2.powi(steps));
    let _ = mean.f_lerp_(gradient, 1.0 - BETA_1)?;
    let _ = square.f_mul_scalar_(BETA_2)?.f_addcmul_(gradient, &(gradient * (1.0 - BETA_2)))?;
    let mut divisor = square.f_sqrt()?;
    let _ = divisor.f_div_scalar_(correction_2.sqrt())?.f_add_scalar_(EPSILON)?;
    let _ = weight.f_addcdiv_(&(&*mean * (-rate / correction_1)), &divisor)?;
    Ok(())
}

/// Scales gradients down so that all of them together have at most this Euclidean norm; the norm that they had.
pub fn clip(gradients: &mut [Tensor], norm_max: f64) -> Result<f64> {
    tch::no_grad(|| {
        let mut squares = 0.0;
        for gradient in gradients.iter().filter(|gradient| gradient.defined()) {
            squares += gradient.f_square()?.f_sum(tch::Kind::Double)?.f_double_value(&[])?;
        }
        let norm = squares.sqrt();
        if norm > norm_max {
            // The small number is PyTorch's, against a norm of zero.
            let factor = norm_max / (norm + 1e-6);
            for gradient in gradients.iter_mut().filter(|gradient| gradient.defined()) {
                let _ = gradient.f_mul_scalar_(factor)?;
            }
        }
        Ok(norm)
    })
}
