//! Writes counters and states as the lines on standard error that Hadoop parses.

use std::io::{self, Write};

/// Writes counters in the form that Hadoop parses on a task's stderr. Each line is one write, so that lines
/// of other threads cannot interrupt it.
pub fn report_counters(log: &mut impl Write, group: &str, counters: &[(&str, u64)]) -> io::Result<()> {
    for (name, value) in counters {
        log.write_all(format!("reporter:counter:{group},{name},{value}\n").as_bytes())?;
    }
    log.flush()
}

/// Writes the status of a task in the form that Hadoop parses on stderr. A status also resets Hadoop's
/// timeout for the task.
pub fn report_status(log: &mut impl Write, status: &str) -> io::Result<()> {
    log.write_all(format!("reporter:status:{}\n", status.replace(['\r', '\n'], " ")).as_bytes())?;
    log.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_lines_that_hadoop_reads() {
        let mut log = Vec::new();
        report_counters(&mut log, "mapper", &[("lines", 10), ("blank", 1)]).unwrap();
        report_status(&mut log, "closing\nthe shard").unwrap();
        let expected = "reporter:counter:mapper,lines,10\nreporter:counter:mapper,blank,1\n\
                        reporter:status:closing the shard\n";
        assert_eq!(String::from_utf8(log).unwrap(), expected);
    }
}
