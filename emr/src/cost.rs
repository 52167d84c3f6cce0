//! The cost of a cluster: the hours of its instances, by the prices of a job file.
//!
//! An instance is paid from its creation to its end, by the formula of [`crate::plan::price`]. Volumes, requests and
//! traffic are not counted.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::cluster::Instance;
use crate::job::Prices;
use crate::plan::price::{self, Usage};

const S_PER_HOUR: f64 = 3600.0;

/// What the instances of a cluster cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Hours of all instances.
    pub instance_hours: f64,
    /// Instances by type and market.
    pub types: Vec<OfType>,
    /// The currency.
    pub currency: String,
    /// The sum; `None` if the price of a type is unknown.
    pub amount: Option<f64>,
    /// The price per hour of the instances that are running now.
    pub per_hour: Option<f64>,
    /// Types without a price in the job file.
    pub without_price: Vec<String>,
    /// Whether all instances have ended.
    pub is_final: bool,
}

/// Instances of one type and market.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfType {
    /// The type.
    pub instance_type: String,
    /// Whether they are spot instances.
    pub is_spot: bool,
    /// Their number.
    pub instances: usize,
    /// Their hours.
    pub hours: f64,
    /// Their cost.
    pub amount: Option<f64>,
}

/// The time, in seconds since 1970.
pub fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

impl Cost {
    /// Adds up the instances of a cluster until `now_unix_s`.
    pub fn of(instances: &[Instance], prices: &Prices, now_unix_s: u64) -> Self {
        let mut types: BTreeMap<(&str, bool), Vec<Usage>> = BTreeMap::new();
        let mut running = Vec::new();
        for instance in instances {
            let Some(begin) = instance.times.created_unix_s else { continue };
            let end = instance.times.ended_unix_s;
            let seconds = end.unwrap_or(now_unix_s).saturating_sub(begin) as f64;
            let (instance_type, is_spot) = (instance.instance_type.clone(), instance.is_spot);
            let used = Usage { instance_type, count: 1, is_spot, seconds };
            if end.is_none() {
                running.push(Usage { seconds: S_PER_HOUR, ..used.clone() });
            }
            types.entry((&instance.instance_type, is_spot)).or_default().push(used);
        }
        let amount = |usage: &[Usage]| price::cost(usage, prices).map(|cost| cost.total());
        let of_type = |((name, is_spot), usage): (&(&str, bool), &Vec<Usage>)| OfType {
            instance_type: (*name).to_owned(),
            is_spot: *is_spot,
            instances: usage.len(),
            hours: usage.iter().map(|used| used.seconds / S_PER_HOUR).sum(),
            amount: amount(usage).ok(),
        };
        let of_types: Vec<OfType> = types.iter().map(of_type).collect();
        let all = amount(&types.into_values().flatten().collect::<Vec<_>>());
        Self {
            instance_hours: of_types.iter().map(|of_type| of_type.hours).sum(),
            types: of_types,
            currency: prices.currency().to_owned(),
            without_price: all.as_ref().err().cloned().unwrap_or_default(),
            amount: all.ok(),
            per_hour: amount(&running).ok(),
            is_final: running.is_empty(),
        }
    }
}

/// `1.42 USD for 3.50 instance hours (1 m6i.xlarge, 4 m6i.2xlarge spot)`
impl fmt::Display for Cost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.amount {
            Some(amount) => write!(out, "{amount:.2} {} for ", self.currency)?,
            None => out.write_str("unknown for ")?,
        }
        write!(out, "{:.2} instance hours", self.instance_hours)?;
        for (n, of_type) in self.types.iter().enumerate() {
            let market = if of_type.is_spot { " spot" } else { "" };
            let before = if n == 0 { " (" } else { ", " };
            write!(out, "{before}{} {}{market}", of_type.instances, of_type.instance_type)?;
        }
        if !self.types.is_empty() {
            out.write_str(")")?;
        }
        if !self.is_final {
            out.write_str(" so far")?;
        }
        if !self.without_price.is_empty() {
            write!(out, "; add {} to prices.instances in the job file", self.without_price.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Times;

    fn instance(name: &str, is_spot: bool, begin: u64, end: Option<u64>) -> Instance {
        Instance {
            id: format!("ci-{begin}"),
            instance_type: name.to_owned(),
            is_spot,
            group: None,
            state: "RUNNING".to_owned(),
            times: Times { created_unix_s: Some(begin), started_unix_s: None, ended_unix_s: end },
        }
    }

    fn prices() -> Prices {
        toml::from_str(
            "[instances.\"m6i.xlarge\"]\nec2 = 0.23\nemr = 0.048\n\
             [instances.\"m6i.2xlarge\"]\nec2 = 0.46\nemr = 0.096\nspot = 0.19\n",
        )
        .unwrap()
    }

    #[test]
    fn the_cost_equals_a_sum_made_by_hand() {
        let instances = [
            instance("m6i.xlarge", false, 0, Some(7200)),
            instance("m6i.2xlarge", false, 600, Some(7800)),
            instance("m6i.2xlarge", true, 600, Some(4200)),
            // Lost after 20 s, paid for 60 s.
            instance("m6i.2xlarge", true, 600, Some(620)),
        ];
        let cost = Cost::of(&instances, &prices(), 10_000);
        // 2 h × 0.278 + 2 h × 0.556 + 1 h × 0.286 + 1/60 h × 0.286
        assert!((cost.amount.unwrap() - 1.958_766_67).abs() < 1e-6, "{cost:?}");
        assert!((cost.instance_hours - 5.005_555_56).abs() < 1e-6);
        assert!(cost.is_final);
        let expected = "1.96 USD for 5.01 instance hours (1 m6i.2xlarge, 2 m6i.2xlarge spot, 1 m6i.xlarge)";
        assert_eq!(cost.to_string(), expected);
    }

    #[test]
    fn a_running_cluster_has_a_price_per_hour_and_a_type_without_price_is_named() {
        let running = [instance("m6i.xlarge", false, 0, None)];
        let cost = Cost::of(&running, &prices(), 1800);
        assert_eq!(cost.per_hour, Some(0.278));
        assert_eq!(cost.to_string(), "0.14 USD for 0.50 instance hours (1 m6i.xlarge) so far");
        let cost = Cost::of(&[instance("r8g.large", false, 0, Some(3600))], &prices(), 3600);
        assert_eq!((cost.amount, &cost.without_price[..]), (None, &["r8g.large".to_owned()][..]));
        let expected = "unknown for 1.00 instance hours (1 r8g.large); add r8g.large to prices.instances in the job file";
        assert_eq!(cost.to_string(), expected);
    }
}
