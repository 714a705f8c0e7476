# Ordinary Perl: hashes, sorting, regular expressions, sprintf, a file; prints after every line of input.
use strict;
use warnings;
$| = 1;
my (%count, @longest);
open my $out, '>', 'words.txt' or die "words.txt: $!";
while (my $line = <STDIN>) {
    chomp $line;
    $count{lc $1}++ while $line =~ /(\w+)/g;
    @longest = (sort { length $b <=> length $a or $a cmp $b } keys %count)[0 .. 2];
    printf "%d words, longest %s\n", scalar keys %count, join ' ', grep { defined } @longest;
    print {$out} join(',', map { "$_=$count{$_}" } (sort keys %count)[0 .. 4]), "\n" if $. > 20 && $. % 5 == 0;
}
close $out;
exit 3;
