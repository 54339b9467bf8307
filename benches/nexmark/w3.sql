SELECT window_start, window_end, MAX(price) AS top, COUNT(DISTINCT auction) AS auctions
FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
GROUP BY window_start, window_end;
