//! The three kinds of functions that a program can give to SQL: a scalar function gives a value for each row, a table function any number of
//! rows for each row, an aggregate function a value for each group of rows.
//!
//! Run it: `cargo run --example 14_user_functions`

use flott::{Accumulator, AggregateFn, Merge, Result, Retract, Rows, ScalarFn, Session, TableFn};

/// How even the lengths of words are: the population's variance, which rows can leave again.
#[derive(Default)]
struct Spread {
    count: i64,
    sum: f64,
    squares: f64,
}

impl Accumulator for Spread {
    type Arguments = (f64,);
    type Value = Option<f64>;
    type State = (i64, f64, f64);

    fn accumulate(&mut self, (value,): (f64,)) -> Result<()> {
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
        Ok(())
    }

    fn value(&self) -> Option<f64> {
        let (count, sum) = (self.count as f64, self.sum);
        (self.count > 0).then(|| ((self.squares - sum * sum / count) / count * 1000.0).round() / 1000.0)
    }

    // What stands in a checkpoint, a column each.
    fn save(&self) -> (i64, f64, f64) {
        (self.count, self.sum, self.squares)
    }

    fn load((count, sum, squares): (i64, f64, f64)) -> Self {
        Spread { count, sum, squares }
    }

    // Over rows that change, those that were are taken back.
    const RETRACT: Option<Retract<Self>> = Some(|own, (value,)| {
        own.count -= 1;
        own.sum -= value;
        own.squares -= value * value;
        Ok(())
    });

    // Windows that overlap are made of parts, which are merged.
    const MERGE: Option<Merge<Self>> = Some(|own, other| {
        own.count += other.count;
        own.sum += other.sum;
        own.squares += other.squares;
        Ok(())
    });
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let session = Session::new();
    session.register_function(ScalarFn::rows::<(&str,), String>("initials", |(text,)| {
        text.split(' ').filter_map(|word| word.chars().next()).collect()
    }))?;
    let words = |(text,): (&str,), rows: &mut Rows<(&str, i64)>| {
        text.split(' ').for_each(|word| rows.push((word, word.chars().count() as i64)));
    };
    session.register_table_function(TableFn::rows::<(&str,), (&str, i64), _>("words", ["word", "length"], words))?;
    session.register_aggregate_function(AggregateFn::of::<Spread>("spread"))?;

    session
        .execute(
            "CREATE VIEW lines AS SELECT * FROM (VALUES
               ('Hamlet', 'to be or not to be'), ('Hamlet', 'that is the question'), ('Macbeth', 'fair is foul and foul is fair')
             ) AS t (play, line)",
        )
        .await?;
    print(&session, "SELECT play, initials(line) FROM lines").await?;
    print(&session, "SELECT play, word FROM lines, LATERAL TABLE(words(line)) AS w(word, length) WHERE length > 3").await?;
    print(
        &session,
        "SELECT play, COUNT(*) AS words, spread(length) AS spread, spread(DISTINCT length) FILTER (WHERE word <> 'question') AS other
         FROM lines, LATERAL TABLE(words(line)) AS w(word, length) GROUP BY play",
    )
    .await
}

async fn print(session: &Session, sql: &str) -> Result<()> {
    for row in session.query(sql).await?.collect_text().await? {
        println!("{}", row.join("  "));
    }
    println!();
    Ok(())
}
