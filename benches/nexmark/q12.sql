SELECT bidder, COUNT(*) AS bid_count, TUMBLE_START(p_time, INTERVAL '10' SECOND) AS starttime, TUMBLE_END(p_time, INTERVAL '10' SECOND) AS endtime
FROM (SELECT bidder, PROCTIME() AS p_time FROM bid)
GROUP BY bidder, TUMBLE(p_time, INTERVAL '10' SECOND);
