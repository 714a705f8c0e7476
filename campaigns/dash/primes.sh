# Builtins only: what a shell does without children.
n=2
found=0
while [ "$found" -lt 550 ]; do
    i=2
    prime=1
    while [ $((i * i)) -le "$n" ]; do
        if [ $((n % i)) -eq 0 ]; then
            prime=0
            break
        fi
        i=$((i + 1))
    done
    if [ "$prime" -eq 1 ]; then
        found=$((found + 1))
        echo "$found $n"
    fi
    n=$((n + 1))
done
echo "$found" > total
