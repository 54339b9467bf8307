//! Top-N by keys, and ORDER BY … LIMIT, which is one without partitions: the visible rows of each partition change as rows come (and, of a changing input, go).
//!
//! With the number in the output, or with one number alone, a row replaces another at its place (`-U` `+U`); otherwise rows come
//! (`+I`) and go (`-D`). One change a place and batch: Flink emits a change for each input row, ours, folded, give the same table.

use super::changes::{Changes, Shown};
use super::keys::RankKey;
use super::table::RankTable;
use super::touched::Touched;
use crate::error::Result;
use crate::runtime::state::RowId;
use crate::runtime::{Operator, OperatorContext, Output, StateTable, StateTableSnapshot};
use crate::stream_graph::RankOperatorSpec;
use crate::types::{Batch, InputNumber, KeyGroupRange};

/// Top-N by keys.
pub(super) struct TopN<K> {
    table: RankTable<K>,
    touched: Touched,
    has_places: bool,
    shown: Shown,
}

impl<K: RankKey> TopN<K> {
    /// From its spec.
    pub(super) fn new(spec: &RankOperatorSpec, context: &OperatorContext) -> Result<Self> {
        Ok(TopN {
            table: RankTable::new(spec, context.max_parallelism)?.with_ttl(context),
            touched: Touched::default(),
            has_places: spec.rank.output_number || spec.rank.range.single().is_some(),
            shown: Shown {
                number: spec.rank.output_number,
                update_before: spec.emit_update_before,
                unchanged: context.state_ttl_ms.iter().any(|ttl| *ttl > 0),
            },
        })
    }

    /// ORDER BY … LIMIT. Rows that leave the window always go by `-D`, also where only one row is visible: who reads it knows the keys of
    /// rows, and another one may have another key.
    pub(super) fn of_limit(spec: &RankOperatorSpec, context: &OperatorContext) -> Result<Self> {
        Ok(TopN {
            table: RankTable::new(spec, context.max_parallelism)?.with_ttl_of_hidden_rows(context),
            has_places: false,
            ..TopN::new(spec, context)?
        })
    }

    fn apply(&mut self, batch: &Batch) -> Result<Option<Batch>> {
        self.table.update(batch, Some(&mut self.touched))?;
        let mut changes = Changes::default();
        let mut after: Vec<RowId> = Vec::new();
        for (group, before) in self.touched.iter() {
            after.clear();
            self.table.visible(group, &mut after);
            while self.table.forget_over(before, &after)? {
                after.clear();
                self.table.visible(group, &mut after);
            }
            if self.has_places {
                changes.add_places(before, &after, self.table.first_number());
            } else {
                changes.add_rows(before, &after);
            }
        }
        let changed = changes.into_batch(self.table.store(), &self.shown)?;
        self.table.release(self.touched.groups());
        Ok(changed)
    }
}

impl<K: RankKey> Operator for TopN<K> {
    fn process_batch(&mut self, _input: InputNumber, mut batch: Batch, output: &mut dyn Output) -> Result<()> {
        let steps = batch.take_steps();
        if batch.num_rows() > 0
            && let Some(changes) = self.apply(&batch)?
        {
            output.batch(changes)?;
        }
        steps.last().map_or(Ok(()), |watermark| output.watermark(watermark))
    }

    fn next_processing_timer(&self) -> Option<i64> {
        self.table.next_timer()
    }

    fn process_time(&mut self, _now_ms: i64, _output: &mut dyn Output) -> Result<()> {
        self.table.expire()
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        vec![("rows", &mut self.table)]
    }
}

impl<K: RankKey> StateTable for RankTable<K> {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        Ok(self.frozen_rows())
    }

    fn outlives_input(&self) -> bool {
        false
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        self.restore_rows(snapshot, range)
    }

    fn bytes(&self) -> usize {
        RankTable::bytes(self)
    }
}
