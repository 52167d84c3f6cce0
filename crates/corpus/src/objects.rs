//! Restricts JSON records to objects. Code derived by serde also accepts a list of the same values, which no
//! program of this project writes. This module refuses such lists at every depth.

use serde::{Deserialize, Deserializer};

/// Implements reading from objects only, for types that derive both `Serialize` and `Deserialize` under
/// `#[serde(remote = "Self")]`. That attribute turns the derived code into functions of the type.
#[macro_export]
macro_rules! read_from_objects {
    ($($record:ident),+) => { $(
        impl<'de> serde::Deserialize<'de> for $record {
            fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct Members;
                impl<'de> serde::de::Visitor<'de> for Members {
                    type Value = $record;
                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        formatter.write_str("an object")
                    }
                    fn visit_map<A>(self, members: A) -> std::result::Result<$record, A::Error>
                    where
                        A: serde::de::MapAccess<'de>,
                    {
                        $record::deserialize(serde::de::value::MapAccessDeserializer::new(members))
                    }
                }
                deserializer.deserialize_map(Members)
            }
        }

        impl serde::Serialize for $record {
            fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
            where
                S: serde::Serializer,
            {
                $record::serialize(self, serializer)
            }
        }
    )+ };
}

/// Reads an optional member that is omitted if it is absent, and never null.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use crate::ledger::ReducerCounts;
    use crate::settings::Settings;

    #[test]
    fn a_list_of_values_is_refused_as_a_record() {
        let counts = json!({ "reviews": 4, "distinct": 3, "only_stopwords": 0, "rows": 3 });
        assert_eq!(from_value::<ReducerCounts>(counts).unwrap().rows, 3);
        let refusal = from_value::<ReducerCounts>(json!([4, 3, 0, 3])).unwrap_err();
        assert_eq!(refusal.to_string(), "invalid type: sequence, expected an object");
        assert!(from_value::<Settings>(json!([1, "17.0.0", [], 5, "first", 4])).is_err());
    }
}
