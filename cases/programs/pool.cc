// A pool of std::thread that takes work from a queue; some of the work throws. The results come in order.
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

class Pool {
    std::mutex mutex;
    std::condition_variable more;
    std::deque<std::packaged_task<long()>> tasks;
    bool over = false;
    std::vector<std::thread> threads;

    void work()
    {
        for (;;) {
            std::unique_lock<std::mutex> lock(mutex);
            more.wait(lock, [this] { return over || !tasks.empty(); });
            if (tasks.empty())
                return;
            auto task = std::move(tasks.front());
            tasks.pop_front();
            lock.unlock();
            task();
        }
    }

public:
    explicit Pool(int count)
    {
        for (int i = 0; i < count; i++)
            threads.emplace_back([this] { work(); });
    }
    ~Pool()
    {
        {
            std::lock_guard<std::mutex> lock(mutex);
            over = true;
        }
        more.notify_all();
        for (auto &thread : threads)
            thread.join();
    }
    std::future<long> run(std::packaged_task<long()> task)
    {
        auto result = task.get_future();
        {
            std::lock_guard<std::mutex> lock(mutex);
            tasks.push_back(std::move(task));
        }
        more.notify_one();
        return result;
    }
};

static long job(int number)
{
    std::vector<long> ballast(1 + number % 500, number);
    if (number % 7 == 3)
        throw std::runtime_error("job " + std::to_string(number));
    long sum = 0;
    for (long value : ballast)
        sum = sum * 31 + value;
    return sum;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? std::atoi(argv[1]) : 50;
    Pool pool(6);
    for (int round = 0; round < rounds; round++) {
        std::vector<std::future<long>> results;
        for (int i = 0; i < 20; i++)
            results.push_back(pool.run(std::packaged_task<long()>([=] { return job(round * 20 + i); })));
        std::string line = "round " + std::to_string(round);
        for (auto &result : results) {
            try {
                line += " " + std::to_string(result.get());
            } catch (const std::runtime_error &error) {
                line += std::string(" (") + error.what() + ")";
            }
        }
        line += "\n";
        for (size_t at = 0; at < line.size();) {
            ssize_t n = write(1, line.data() + at, line.size() - at);
            if (n <= 0)
                return 2;
            at += n;
        }
    }
    return 0;
}
