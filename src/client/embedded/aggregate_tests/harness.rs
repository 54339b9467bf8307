//! Single operators with an aggregate function of the program: their state goes on with another parallelism.

use super::*;
use crate::clock::{Clock, VirtualClock};
use crate::config::Configuration;
use crate::expr::{AggregateCall, UserFunction};
use crate::operators::Operators;
use crate::operators::testing::{Lines, batch, push, restore, rowtime, share, snapshot};
use crate::runtime::{Operator, OperatorContext, OperatorFactory, StateTableSnapshot};
use crate::stream_graph::{OperatorSpec, WindowAggregateSpec, WindowKind, WindowProperty, WindowSource, WindowSpec};
use crate::testing::connectors::ScriptedConnectors;
use crate::testing::operator_harness::{context, environment};
use crate::types::Watermark;

/// The numbers of a group in the order in which they came: it shows whether they are restored in theirs.
#[derive(Default)]
struct Journal(String, Vec<i64>);

impl Accumulator for Journal {
    type Arguments = (i64,);
    type Value = String;
    type State = (String, Vec<i64>);

    fn accumulate(&mut self, (number,): (i64,)) -> Result<()> {
        self.0.push_str(&number.to_string());
        self.1.push(number);
        Ok(())
    }

    fn value(&self) -> String {
        format!("{}:{}", self.0, self.1.iter().sum::<i64>())
    }

    fn save(&self) -> Self::State {
        (self.0.clone(), self.1.clone())
    }

    fn load((text, numbers): Self::State) -> Self {
        Journal(text, numbers)
    }

    const MERGE: Option<Merge<Self>> = Some(|own, other| {
        own.0.push_str(&other.0);
        own.1.extend(other.1);
        Ok(())
    });

    fn heap_bytes(&self) -> usize {
        self.0.capacity() + self.1.capacity() * size_of::<i64>()
    }
}

fn context_of(index: u32, parallelism: u32) -> OperatorContext {
    let environment = environment(VirtualClock::new(0) as Arc<dyn Clock>, &ScriptedConnectors::default());
    let journal = Arc::new(AggregateFn::of::<Journal>("journal"));
    environment.functions.register_user(UserFunction::Aggregate(journal)).unwrap();
    context(index, parallelism, &Configuration::default(), &environment)
}

fn calls() -> Vec<AggregateCall> {
    let call = AggregateCall {
        function: "journal".to_string(),
        args: vec![1],
        arg_types: vec![DataType::nullable(TypeKind::BigInt)],
        distinct: false,
        order: Vec::new(),
        filter: None,
        data_type: DataType::string().with_nullable(false),
        name: "journal".to_string(),
    };
    vec![call.clone(), AggregateCall { distinct: true, ..call }]
}

fn operator(spec: &OperatorSpec, context: &OperatorContext, snapshots: &[Vec<StateTableSnapshot>]) -> Box<dyn Operator> {
    let mut operator = Operators.build(spec, context).unwrap();
    operator.open(context).unwrap();
    snapshots.iter().for_each(|snapshot| restore(&mut *operator, context, snapshot));
    operator
}

/// What comes out when each part of the input goes to so many subtasks that share out the state of those before.
fn run(spec: &OperatorSpec, parts: &[Vec<String>], parallelisms: &[u32]) -> Vec<String> {
    let (mut snapshots, mut lines) = (Vec::new(), Vec::new());
    for (stage, (part, parallelism)) in parts.iter().zip(parallelisms).enumerate() {
        let part = batch(&part.iter().map(String::as_str).collect::<Vec<_>>());
        let mut next = Vec::new();
        for index in 0..*parallelism {
            let context = context_of(index, *parallelism);
            let mut operator = operator(spec, &context, &snapshots);
            let mut output = Lines::default();
            push(&mut *operator, share(&part, index, *parallelism), &mut output);
            if stage + 1 == parts.len() {
                operator.process_watermark(Watermark::MAX, &mut output).unwrap();
            }
            lines.extend(output.take_sorted_rows().into_iter().filter(|line| !line.starts_with('-')));
            next.push(snapshot(&mut *operator));
        }
        snapshots = next;
    }
    lines.sort_unstable();
    lines
}

#[test]
fn a_process_without_the_function_says_so() {
    let missing = crate::expr::AggregateSet::new(&calls(), &crate::expr::builtin_functions(), false).map(|_| ()).unwrap_err();
    assert_eq!((missing.kind(), missing.message()), (ErrorKind::UndefinedFunction, "function \"journal\" not found"));
    assert!(missing.hint().unwrap().contains("register it before the job starts"));
}

#[test]
fn state_goes_on_with_another_parallelism() {
    let mut random = fastrand::Rng::with_seed(3);
    let parts: Vec<Vec<String>> = (0..3)
        .map(|part| {
            (0..120).map(|row| format!("+I key{} {} {}", random.u8(0..20), random.u8(0..6), part * 9_000 + row * 90)).collect()
        })
        .collect();
    let window = |kind| WindowAggregateSpec {
        window: WindowSource::Assigned(WindowSpec { partition_keys: vec![0], ..WindowSpec::new(kind, 2, rowtime()) }),
        keys: vec![0],
        aggregates: calls(),
        properties: vec![WindowProperty::End],
        input_retracts: false,
        emit: None,
        emit_update_before: false,
    };
    let windows = [
        WindowKind::Tumble { size_ms: 12_000, offset_ms: 0 },
        WindowKind::Hop { slide_ms: 4_000, size_ms: 12_000, offset_ms: 0 },
        WindowKind::Cumulate { step_ms: 4_000, size_ms: 12_000, offset_ms: 0 },
        WindowKind::Session { gap_ms: 2_000 },
    ];
    let groups =
        OperatorSpec::GroupAggregate { keys: vec![0], aggregates: calls(), input_retracts: false, emit_update_before: true };
    for spec in windows.into_iter().map(|kind| OperatorSpec::WindowAggregate(window(kind))).chain([groups]) {
        let expected = run(&spec, &parts, &[1, 1, 1]);
        assert!(expected.len() > 30, "{}", expected.len());
        for parallelisms in [[1, 3, 2], [4, 1, 3]] {
            assert_eq!(run(&spec, &parts, &parallelisms), expected, "{parallelisms:?} {spec:?}");
        }
    }
}
