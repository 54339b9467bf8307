//! What Flink 2.3 answers, accumulator by accumulator.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int8Array, Int32Array, Int64Array,
    StringViewArray,
};
use arrow::datatypes::Int64Type;
use arrow::util::display::array_value_to_string;

use super::*;
use crate::expr::{AggregateCall, Expr, FunctionRegistry};
use crate::types::{DataType, RowKind, RowKinds, TypeKind};

fn registry() -> FunctionRegistry {
    let mut registry = FunctionRegistry::default();
    builtin_aggregates(&mut registry);
    registry
}

fn call(function: &str, args: &[(usize, DataType)], distinct: bool, filter: Option<usize>) -> AggregateCall {
    let exprs = args.iter().map(|(index, data_type)| Expr::column(*index, data_type.clone())).collect();
    let (exprs, data_type) = registry().aggregate(function).unwrap().bind(exprs, distinct, true).unwrap();
    AggregateCall {
        function: function.to_string(),
        args: args.iter().map(|arg| arg.0).collect(),
        arg_types: exprs.iter().map(Expr::data_type).collect(),
        distinct,
        order: Vec::new(),
        filter,
        data_type,
        name: function.to_lowercase(),
    }
}

fn int() -> DataType {
    DataType::nullable(TypeKind::Int)
}

fn show(arrays: &[ArrayRef]) -> Vec<String> {
    let value =
        |array: &ArrayRef, row| if array.is_null(row) { "NULL".to_string() } else { array_value_to_string(array, row).unwrap() };
    (0..arrays[0].len()).map(|row| arrays.iter().map(|array| value(array, row)).collect::<Vec<_>>().join(" ")).collect()
}

/// The results of groups 0 and 1 after these rows.
fn results(calls: &[AggregateCall], groups: &[u32], columns: &[ArrayRef], kinds: Option<RowKinds>) -> Vec<String> {
    let mut set = AggregateSet::new(calls, &registry(), kinds.is_some()).unwrap();
    set.resize(2);
    set.update(groups, columns, kinds.as_ref()).unwrap();
    // The state of a group is all there is of it.
    let mut copy = AggregateSet::new(calls, &registry(), kinds.is_some()).unwrap();
    copy.resize(2);
    copy.merge(&[0, 1], &set.state(&[0, 1]).unwrap()).unwrap();
    assert_eq!(show(&copy.evaluate(&[0, 1]).unwrap()), show(&set.evaluate(&[0, 1]).unwrap()));
    copy.clear(&[0, 1]).unwrap();
    copy.update(groups, columns, kinds.as_ref()).unwrap();
    assert_eq!(show(&copy.evaluate(&[0, 1]).unwrap()), show(&set.evaluate(&[0, 1]).unwrap()));
    show(&set.evaluate(&[0, 1]).unwrap())
}

#[test]
fn sums_wrap_and_decimals_become_null() {
    let nines = DataType::nullable(TypeKind::Decimal(38, 0));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![Some(i32::MAX), Some(1), None])),
        Arc::new(Int8Array::from(vec![100, 100, -3])),
        Arc::new(Decimal128Array::from(vec![10i128.pow(38) - 1, 1, 5]).with_precision_and_scale(38, 0).unwrap()),
        Arc::new(Float32Array::from(vec![1.1, 2.2, 3.3])),
    ];
    let calls = [
        call("SUM", &[(0, int())], false, None),
        call("SUM", &[(1, DataType::nullable(TypeKind::TinyInt))], false, None),
        call("SUM", &[(2, nines)], false, None),
        call("SUM", &[(3, DataType::nullable(TypeKind::Float))], false, None),
        call("COUNT", &[], false, None),
        call("COUNT", &[(0, int())], false, None),
    ];
    assert_eq!(results(&calls, &[0, 0, 1], &columns, None), ["-2147483648 -56 NULL 3.3000002 2 2", "NULL -3 5 3.3 1 0"]);
}

#[test]
fn averages_keep_the_type_and_cut() {
    let decimal = DataType::nullable(TypeKind::Decimal(10, 2));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![i32::MAX, 1, -5, -4])),
        Arc::new(Decimal128Array::from(vec![125, 225, -100, 2]).with_precision_and_scale(10, 2).unwrap()),
        Arc::new(Float32Array::from(vec![1.1, 2.2, 3.3, 4.4])),
        Arc::new(Int64Array::from(vec![i64::MAX, 1, -7, -8])),
    ];
    let calls = [
        call("AVG", &[(0, int())], false, None),
        call("AVG", &[(1, decimal)], false, None),
        call("AVG", &[(2, DataType::nullable(TypeKind::Float))], false, None),
        call("AVG", &[(3, DataType::nullable(TypeKind::BigInt))], false, None),
    ];
    assert_eq!(
        results(&calls, &[0, 0, 1, 1], &columns, None),
        ["1073741824 1.750000 1.6500001 -4611686018427387904", "-4 -0.490000 3.85 -7"]
    );
}

#[test]
fn deviations_are_cast_to_the_type_of_the_argument() {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![i32::MAX, 1, -5, -4])),
        Arc::new(Decimal128Array::from(vec![125, 225, -100, 2]).with_precision_and_scale(10, 2).unwrap()),
    ];
    let decimal = DataType::nullable(TypeKind::Decimal(10, 2));
    let calls = [
        call("STDDEV_SAMP", &[(0, int())], false, None),
        call("VAR_POP", &[(0, int())], false, None),
        call("VAR_SAMP", &[(1, decimal.clone())], false, None),
        call("STDDEV_SAMP", &[(1, decimal)], false, None),
    ];
    assert_eq!(
        results(&calls, &[0, 0, 1, 1], &columns, None),
        ["1518500248 2147483647 0.500000 0.707107", "0 0 0.520200 0.721249"]
    );
}

#[test]
fn values_are_taken_back() {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![Some(3), Some(9), None, Some(3), Some(9), Some(4)])),
        Arc::new(StringViewArray::from(vec!["c", "i", "n", "c", "i", "d"])),
    ];
    let kinds = RowKinds::new([
        RowKind::Insert,
        RowKind::Insert,
        RowKind::Insert,
        RowKind::Insert,
        RowKind::UpdateBefore,
        RowKind::UpdateAfter,
    ]);
    let text = DataType::string();
    let calls = [
        call("MAX", &[(0, int())], false, None),
        call("MIN", &[(1, text.clone())], false, None),
        call("FIRST_VALUE", &[(0, int())], false, None),
        call("LAST_VALUE", &[(1, text.clone())], false, None),
        call("SUM", &[(0, int())], false, None),
        call("SUM", &[(0, int())], true, None),
        call("COUNT", &[(0, int())], true, None),
        call("LISTAGG", &[(1, text)], false, None),
    ];
    let groups = [0, 0, 0, 0, 0, 0];
    assert_eq!(
        results(&calls, &groups, &columns, Some(kinds)),
        ["4 c 3 d 10 7 2 c,n,c,d", "NULL NULL NULL NULL NULL NULL 0 NULL"]
    );
}

#[test]
fn distinct_calls_share_values_but_not_filters() {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![Some(1), Some(1), Some(2), None, Some(1)])),
        Arc::new(BooleanArray::from(vec![Some(false), Some(true), None, Some(true), Some(false)])),
    ];
    let bigint = DataType::nullable(TypeKind::BigInt);
    let calls = [
        call("COUNT", &[(0, bigint.clone())], true, None),
        call("COUNT", &[(0, bigint.clone())], true, Some(1)),
        call("COUNT", &[(0, bigint.clone())], false, Some(1)),
        call("SUM", &[(0, bigint)], true, None),
    ];
    assert_eq!(results(&calls, &[0, 0, 0, 0, 1], &columns, None), ["2 1 1 3", "1 0 0 1"]);
}

#[test]
fn extremes_and_order_leave_out_nulls() {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Float64Array::from(vec![None, Some(1.5), Some(-2.0), None])),
        Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, None])),
        Arc::new(Int32Array::from(vec![1, 1, 2, 3])),
    ];
    let (double, boolean) = (DataType::nullable(TypeKind::Double), DataType::nullable(TypeKind::Boolean));
    let calls = [
        call("MIN", &[(0, double.clone())], false, None),
        call("MAX", &[(1, boolean)], false, None),
        call("FIRST_VALUE", &[(0, double.clone())], false, None),
        call("LAST_VALUE", &[(0, double)], false, None),
        call("COLLECT", &[(2, int())], false, None),
        call("ARRAY_AGG", &[(2, int())], false, None),
    ];
    assert_eq!(
        results(&calls, &[0, 0, 0, 1], &columns, None),
        ["-2.0 true 1.5 -2.0 [{key: 1, value: 2}, {key: 2, value: 1}] [1, 1, 2]", "NULL NULL NULL NULL [{key: 3, value: 1}] [3]"]
    );
}

#[test]
fn a_second_single_value_is_an_error() {
    let mut set = AggregateSet::new(&[call("SINGLE_VALUE", &[(0, int())], false, None)], &registry(), false).unwrap();
    set.resize(1);
    set.update(&[0], &[Arc::new(Int32Array::from(vec![None]))], None).unwrap();
    assert!(set.update(&[0], &[Arc::new(Int32Array::from(vec![1]))], None).is_err());
}

#[test]
fn calls_are_typed_as_in_flink() {
    let typed = |function: &str, arg: DataType| call(function, &[(0, arg)], false, None).data_type.to_string();
    let decimal = DataType::not_null(TypeKind::Decimal(10, 2));
    assert_eq!(typed("SUM", decimal.clone()), "DECIMAL(38, 2) NOT NULL");
    assert_eq!(typed("AVG", decimal), "DECIMAL(38, 6) NOT NULL");
    assert_eq!(typed("AVG", DataType::not_null(TypeKind::TinyInt)), "TINYINT NOT NULL");
    assert_eq!(typed("COLLECT", int()), "MULTISET<INT> NOT NULL");
    assert_eq!(typed("COUNT", int()), "BIGINT NOT NULL");
    let error = registry().aggregate("sum").unwrap().bind(vec![Expr::column(0, DataType::string())], false, true).unwrap_err();
    assert_eq!(error.message(), "cannot apply SUM to arguments SUM(<STRING>)");
}

#[test]
fn group_numbers_are_used_again_and_keys_read_back() {
    let texts: ArrayRef = Arc::new(StringViewArray::from(vec![Some("a"), None, Some("a"), Some("b")]));
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 1, 1]));
    for columns in [vec![texts.clone()], vec![numbers.clone()], vec![texts.clone(), numbers.clone()], vec![]] {
        let types: Vec<_> = columns.iter().map(|column| column.data_type().clone()).collect();
        let mut keys = GroupKeys::new(&types).unwrap();
        let (mut hashes, mut groups) = (Vec::new(), Vec::new());
        crate::types::hash_columns(&columns, 4, &mut hashes);
        keys.assign(&columns, &hashes, &mut groups).unwrap();
        assert_eq!(groups[0], groups[2]);
        assert_eq!(show_keys(&keys.keys(&groups).unwrap()), show_keys(&columns));
        keys.remove(&[groups[0]]);
        keys.assign(&columns, &hashes, &mut groups).unwrap();
        assert_eq!(keys.fresh(), [0]);
        assert_eq!(keys.len(), keys.num_groups());
    }
}

fn show_keys(columns: &[ArrayRef]) -> Vec<String> {
    if columns.is_empty() { Vec::new() } else { show(columns) }
}

#[test]
fn counts_come_back_as_bigint() {
    let mut set = AggregateSet::new(&[call("COUNT", &[], false, None)], &registry(), false).unwrap();
    set.resize(1);
    set.update(&[0, 0], &[], None).unwrap();
    assert_eq!(set.evaluate(&[0]).unwrap()[0].as_primitive::<Int64Type>().value(0), 2);
}
