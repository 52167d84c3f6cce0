//! Each instruction set is compared with the same operations on single floats.

use crate::simd::{Processor, Row, Table, Vector, on_processor};

/// Values whose operations are exact, so that all instruction sets give equal bits.
const VALUES: [f32; 16] =
    [1.0, 2.0, 0.5, 4.0, 1.5, 3.0, 0.25, 8.0, 6.0, 1.25, 2.5, 0.75, 16.0, 1.75, 5.0, 7.0];

#[inline(always)]
fn operate<V: Vector>() -> Vec<[f32; 16]> {
    let mut results = vec![[0.0; 16]; 9];
    for at in (0..16).step_by(V::LANES) {
        let value = V::load(&VALUES[at..]);
        let other = V::splat(2.0);
        let of_value = [
            value.add(other),
            value.sub(other),
            value.mul(other),
            value.div(other),
            value.mul(value).sqrt(),
            value.fma(other, V::splat(-1.0)),
            value.min(other),
            value.round(),
            V::splat(1.5).scale(value.round()),
        ];
        for (result, value) in results.iter_mut().zip(of_value) {
            value.store(&mut result[at..]);
        }
    }
    results
}

#[test]
fn every_instruction_set_computes_each_operation() {
    type Operation = fn(f32) -> f32;
    let operations: [Operation; 9] = [
        |value| value + 2.0,
        |value| value - 2.0,
        |value| value * 2.0,
        |value| value / 2.0,
        |value| value,
        |value| value * 2.0 - 1.0,
        |value| value.min(2.0),
        f32::round_ties_even,
        |value| 1.5 * value.round_ties_even().exp2(),
    ];
    let expected = operations.map(|operation| VALUES.map(operation));
    for processor in Processor::all() {
        assert_eq!(operate_on(processor), expected, "{processor:?}");
    }
}

#[inline(always)]
fn sum<V: Vector>() -> f32 {
    VALUES.chunks_exact(V::LANES).map(|values| V::load(values).sum()).sum()
}

#[test]
fn every_instruction_set_sums_its_lanes() {
    for processor in Processor::all() {
        assert_eq!(sum_on(processor), VALUES.iter().sum::<f32>(), "{processor:?}");
    }
}

#[inline(always)]
fn reciprocals<V: Vector>(values: &mut [f32]) {
    for values in values.chunks_mut(V::LANES) {
        V::load_part(values).reciprocal().store_part(values);
    }
}

#[inline(always)]
fn add_one<V: Vector>(row: Row<'_>) -> f32 {
    for at in (0..16).step_by(V::LANES) {
        V::load_row(row, at).add(V::splat(1.0)).store_row(row, at);
    }
    row.get(15)
}

on_processor! {
    fn operate_on() -> Vec<[f32; 16]> = operate;
    fn sum_on() -> f32 = sum;
    fn all_reciprocals(values: &mut [f32]) = reciprocals;
    fn add_one_to(row: Row<'_>) -> f32 = add_one;
}

#[test]
fn a_part_of_a_vector_is_loaded_and_stored_without_its_neighbours() {
    for processor in Processor::all() {
        for length in 0..VALUES.len() {
            let mut values = VALUES;
            all_reciprocals(processor, &mut values[..length]);
            for (at, (found, value)) in values.into_iter().zip(VALUES).enumerate() {
                let expected = if at < length { 1.0 / value } else { value };
                assert!((found - expected).abs() <= 2.0 * f32::EPSILON * expected, "{processor:?} {length}");
            }
        }
    }
}

#[test]
fn vectors_are_loaded_from_rows_and_stored_into_them() {
    for processor in Processor::all() {
        let table = Table::new(3, 10, 2).unwrap();
        table.write(1, 1, &VALUES[..10]);
        assert_eq!(add_one_to(processor, table.row(1, 1)), 1.0);
        let mut values = [0.0; 10];
        table.read(1, 1, &mut values);
        assert_eq!(values[..], VALUES[..10].iter().map(|value| value + 1.0).collect::<Vec<_>>());
        for (row, part) in [(0, 0), (0, 1), (1, 0), (2, 0), (2, 1)] {
            table.read(row, part, &mut values);
            assert_eq!(values, [0.0; 10], "{row} {part}");
        }
    }
}

#[test]
#[should_panic(expected = "within the row")]
fn a_vector_outside_of_a_row_is_refused() {
    let table = Table::new(1, 16, 1).unwrap();
    table.row(0, 0).get(16);
}

#[test]
#[should_panic(expected = "no such row")]
fn a_row_outside_of_a_table_is_refused() {
    let table = Table::new(1, 16, 1).unwrap();
    let _ = table.row(1, 0);
}
