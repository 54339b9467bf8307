SELECT bidder, window_start, window_end, COUNT(*) AS n, SUM(price) AS total
FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end;
