// Throws exceptions through many frames with destructors, rethrows them, and counts what was caught.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

static long destroyed;

struct Guard {
    std::string name;
    explicit Guard(int depth) : name("guard number " + std::to_string(depth)) {}
    ~Guard() { destroyed += name.size(); }
};

struct Custom : std::runtime_error {
    int depth;
    Custom(int depth) : std::runtime_error("custom"), depth(depth) {}
};

static int descend(int depth, int bottom)
{
    Guard guard(depth);
    std::vector<int> ballast(depth % 17, depth);
    if (depth == bottom) {
        if (bottom % 3 == 0)
            throw Custom(depth);
        if (bottom % 3 == 1)
            throw bottom;
        return std::stoi("no number");
    }
    try {
        return descend(depth + 1, bottom) + static_cast<int>(ballast.size());
    } catch (const Custom &) {
        if (depth % 5 == 0)
            throw Custom(depth);
        throw;
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? std::atoi(argv[1]) : 1000;
    long sum = 0;
    for (int i = 0; i < rounds; i++) {
        const char *what = "nothing";
        try {
            descend(0, i % 40);
        } catch (const Custom &e) {
            what = e.what();
            sum += e.depth;
        } catch (int n) {
            what = "int";
            sum += n;
        } catch (const std::exception &e) {
            what = e.what();
        }
        char line[128];
        int len = std::snprintf(line, sizeof line, "%d %s %ld %ld\n", i, what, sum, destroyed);
        if (write(1, line, len) != len)
            return 2;
    }
    return 0;
}
