# Talks to the server on the socket beside, as one client after the other, and ends it.
set -u
tries=0
until [ "$(redis-cli -s ./socket PING 2>/dev/null)" = PONG ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || exit 9
    sleep 0.02
done
round=0
while [ "$round" -lt 6 ]; do
    seq 1 400 | awk -v r="$round" '{ print "INCRBY n" $1 % 40, $1 + r; print "RPUSH l" $1 % 7, $1; print "GET n" $1 % 40 }' |
        redis-cli -s ./socket || exit 8
    round=$((round + 1))
done
redis-cli -s ./socket SORT l3 LIMIT 0 20
redis-cli -s ./socket SHUTDOWN NOSAVE
exit 0
