/* A library whose answer depends on the version that it was built as. */
static const int padding[4096] = {[4095] = VERSION};
static int calls[4096];

int answer(void)
{
    calls[2048]++;
    return padding[4095] * 100 + calls[2048];
}
