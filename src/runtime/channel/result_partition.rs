//! The output of a task for one job edge: routes batches to subpartitions, joins small pieces, and knows whether there is room.

use std::sync::Arc;

use super::batch_builder::BatchBuilder;
use super::pool::LocalBufferPool;
use super::router::{Routed, Router};
use super::{ChannelSender, ChannelSettings};
use crate::error::Result;
use crate::runtime::{StreamElement, WatermarkStatus};
use crate::types::{Batch, Watermark};

/// The output of a task for one job edge.
#[derive(Debug)]
pub struct ResultPartition {
    router: Router,
    subpartitions: Vec<Subpartition>,
    pool: Arc<LocalBufferPool>,
    buffer_timeout_ms: i64,
    now_ms: i64,
    /// When the oldest waiting rows were put into a builder.
    open_since_ms: Option<i64>,
    finished: bool,
    rows_out: u64,
    bytes_out: u64,
}

#[derive(Debug)]
struct Subpartition {
    builder: BatchBuilder,
    sender: Box<dyn ChannelSender>,
    full: Vec<Batch>,
}

impl ResultPartition {
    /// A partition over these channels.
    pub fn new(
        router: Router,
        senders: Vec<Box<dyn ChannelSender>>,
        pool: Arc<LocalBufferPool>,
        settings: &ChannelSettings,
    ) -> Self {
        let builder = |sender| Subpartition { builder: BatchBuilder::new(settings.batch_rows), sender, full: Vec::new() };
        ResultPartition {
            router,
            subpartitions: senders.into_iter().map(builder).collect(),
            pool,
            buffer_timeout_ms: settings.buffer_timeout_ms.min(i64::MAX as u64) as i64,
            now_ms: 0,
            open_since_ms: None,
            finished: false,
            rows_out: 0,
            bytes_out: 0,
        }
    }

    /// Whether the task may take more input. If not, its mailbox is woken when it may.
    pub fn has_room(&self) -> bool {
        self.pool.has_room()
    }

    /// Whether no consumer reads any more.
    pub fn is_released(&self) -> bool {
        self.subpartitions.iter().all(|subpartition| subpartition.sender.is_released())
    }

    /// Batches that wait for credit.
    pub fn waiting(&self) -> usize {
        self.pool.waiting()
    }

    /// Channels, one for each consumer.
    pub fn num_channels(&self) -> usize {
        self.subpartitions.len()
    }

    /// Batches that wait for the credit of one channel.
    pub fn backlog(&self, channel: usize) -> u32 {
        self.subpartitions[channel].sender.backlog()
    }

    /// Rows put in since the start.
    pub fn rows_out(&self) -> u64 {
        self.rows_out
    }

    /// Bytes put in since the start, as held in memory.
    pub fn bytes_out(&self) -> u64 {
        self.bytes_out
    }

    /// What the clock says, for the buffer timeout; sends what has waited long enough.
    pub fn set_time(&mut self, now_ms: i64) -> Result<()> {
        self.now_ms = now_ms;
        match self.next_flush_ms() {
            Some(due) if due <= now_ms => self.flush_builders(),
            _ => Ok(()),
        }
    }

    /// When [`ResultPartition::set_time`] has something to send.
    pub fn next_flush_ms(&self) -> Option<i64> {
        self.open_since_ms.map(|since| since.saturating_add(self.buffer_timeout_ms))
    }

    /// Sends rows.
    pub fn batch(&mut self, batch: Batch) -> Result<()> {
        self.rows_out += batch.num_rows() as u64;
        let bytes = batch.bytes();
        self.bytes_out += bytes as u64;
        let row_bytes = bytes / batch.num_rows().max(1);
        let ResultPartition { router, subpartitions, .. } = self;
        router.route(batch, &mut |target, routed| match routed {
            Routed::Rows(rows) => subpartitions[target].rows(rows, row_bytes),
            Routed::Watermark(watermark) => {
                subpartitions[target].watermark(watermark);
                Ok(())
            }
        })?;
        if self.buffer_timeout_ms == 0 {
            return self.flush_builders();
        }
        if self.subpartitions.iter().all(|subpartition| subpartition.builder.is_empty()) {
            self.open_since_ms = None;
        } else {
            self.open_since_ms.get_or_insert(self.now_ms);
        }
        Ok(())
    }

    /// Sends a watermark to all: with the rows that wait for company, or at once.
    pub fn watermark(&mut self, watermark: Watermark) {
        self.subpartitions.iter_mut().for_each(|subpartition| subpartition.watermark(watermark));
    }

    /// Sends a status to all, after all rows before it.
    pub fn watermark_status(&mut self, status: WatermarkStatus) -> Result<()> {
        self.control(StreamElement::WatermarkStatus(status))
    }

    /// Sends a control element to all, after all rows before it.
    pub fn control(&mut self, element: StreamElement) -> Result<()> {
        self.flush_builders()?;
        self.subpartitions.iter_mut().for_each(|subpartition| subpartition.sender.send(element.clone()));
        Ok(())
    }

    /// Sends the end of data to all. Dropping a partition before that tells the consumers that their producer failed.
    pub fn finish(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.finished, true) {
            self.control(StreamElement::EndOfData)?;
        }
        Ok(())
    }

    fn flush_builders(&mut self) -> Result<()> {
        self.open_since_ms = None;
        self.subpartitions.iter_mut().try_for_each(Subpartition::flush)
    }
}

impl Subpartition {
    fn rows(&mut self, rows: Batch, row_bytes: usize) -> Result<()> {
        if rows.num_rows() == 0 {
            rows.steps().last().into_iter().for_each(|watermark| self.watermark(watermark));
            return Ok(());
        }
        self.builder.push(rows, row_bytes, &mut self.full)?;
        self.full.drain(..).for_each(|batch| self.sender.send(StreamElement::Batch(batch)));
        Ok(())
    }

    fn watermark(&mut self, watermark: Watermark) {
        if self.builder.is_empty() {
            self.sender.send(StreamElement::Watermark(watermark));
        } else {
            self.builder.push_watermark(watermark);
        }
    }

    fn flush(&mut self) -> Result<()> {
        if let Some(batch) = self.builder.flush()? {
            self.sender.send(StreamElement::Batch(batch));
        }
        Ok(())
    }
}
