# The client, a hundred small pages, and a huge file.
set -eu
gcc -O2 -o sessions sessions.c
mkdir site
page=0
while [ "$page" -lt 100 ]; do
    seq "$page" $((page + page * page % 3000 + 80)) >site/p$page.html
    page=$((page + 1))
done
seq 1 400000 >site/huge
