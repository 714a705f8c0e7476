// What newer kernels have for finding written pages, which the system's headers may lack (linux/fs.h, linux/userfaultfd.h).
#include <linux/ioctl.h>
#include <stdint.h>

#define WRITES_ARE_NOTED (1 << 15) // UFFD_FEATURE_WP_ASYNC
#define UNPOPULATED (1 << 13)      // UFFD_FEATURE_WP_UNPOPULATED

struct page_region {
    uint64_t start, end, categories;
};

struct scan {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

#define SCAN _IOWR('f', 16, struct scan)
#define SCAN_ARM (1 << 0)   // PM_SCAN_WP_MATCHING
#define SCAN_CHECK (1 << 1) // PM_SCAN_CHECK_WPASYNC
#define IS_WRITTEN (1 << 1) // PAGE_IS_WRITTEN
#define IS_PRESENT (1 << 3) // PAGE_IS_PRESENT
