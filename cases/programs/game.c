/* A small curses game: a worm is steered over the board with h, j, k, l, eats numbers and grows; q ends it. Each key is
 * one turn and the numbers come from a fixed sequence, so that the same keys always give the same game.
 * game [MILLISECONDS]: looks that often whether the window has another size, and not only when a key was typed; shows it. */
#include <curses.h>
#include <stdint.h>
#include <stdlib.h>

enum { ROWS = 18, COLUMNS = 60, LONGEST = 500 };

static int row[LONGEST], column[LONGEST], patience = -1, length = 5, growing, score, turns, food_row, food_column, food = 1;
static uint64_t random_state = 2463534242;

static int chance(int below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % below;
}

static int on_worm(int r, int c)
{
    for (int i = 0; i < length; i++)
        if (row[i] == r && column[i] == c)
            return 1;
    return 0;
}

static void place_food(void)
{
    food = 1 + chance(9);
    do {
        food_row = 1 + chance(ROWS - 2);
        food_column = 1 + chance(COLUMNS - 2);
    } while (on_worm(food_row, food_column));
}

static void draw(void)
{
    erase();
    for (int c = 0; c < COLUMNS; c++) {
        mvaddch(0, c, '-');
        mvaddch(ROWS - 1, c, '-');
    }
    for (int r = 1; r < ROWS - 1; r++) {
        mvaddch(r, 0, '|');
        mvaddch(r, COLUMNS - 1, '|');
    }
    attron(A_BOLD | COLOR_PAIR(1));
    mvaddch(food_row, food_column, '0' + food);
    attroff(A_BOLD | COLOR_PAIR(1));
    for (int i = length - 1; i >= 0; i--)
        mvaddch(row[i], column[i], i ? 'o' : '@');
    attron(A_REVERSE);
    mvprintw(ROWS, 0, " score %d  length %d ", score, length);
    if (patience > 0)
        printw(" window %dx%d ", COLS, LINES);
    printw(" turn %d ", turns);
    attroff(A_REVERSE);
    move(row[0], column[0]);
    refresh();
}

static int turn(int key)
{
    int r = row[0] + (key == 'j') - (key == 'k'), c = column[0] + (key == 'l') - (key == 'h');
    if (r == row[0] && c == column[0])
        return 1;
    turns++;
    if (r == 0 || r == ROWS - 1 || c == 0 || c == COLUMNS - 1 || on_worm(r, c))
        return 0;
    if (growing && length < LONGEST) {
        length++;
        growing--;
    }
    for (int i = length - 1; i > 0; i--) {
        row[i] = row[i - 1];
        column[i] = column[i - 1];
    }
    row[0] = r;
    column[0] = c;
    if (r == food_row && c == food_column) {
        score += food;
        growing += food;
        place_food();
    }
    return 1;
}

int main(int argc, char **argv)
{
    /* curses looks for the new size when a read has ended. One that came just before the read would wait for a key. */
    if (argc > 1)
        patience = atoi(argv[1]);
    initscr();
    cbreak();
    noecho();
    timeout(patience);
    if (has_colors()) {
        start_color();
        init_pair(1, COLOR_YELLOW, COLOR_BLACK);
    }
    for (int i = 0; i < length; i++) {
        row[i] = ROWS / 2;
        column[i] = COLUMNS / 2 - i;
    }
    place_food();
    draw();
    for (int key; (key = getch()) != 'q' && (key != ERR || patience > 0);) {
        if (!turn(key))
            break;
        draw();
    }
    endwin();
    printf("score %d after %d turns\n", score, turns);
    return 0;
}
