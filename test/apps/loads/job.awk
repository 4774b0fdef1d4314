BEGIN {
    for (i = 0; i < 900000; i++) { count[i % 7001] += i; text[i % 13] = text[i % 13] "x" }
    print "to a coprocess" |& "cat"
    close("cat", "to"); "cat" |& getline line
    getline pause < "gate"
    print line, length(text[3]), count[77]
    n = asorti(count, order)
    print n, order[1], order[n]
    system("echo child; exit 3")
    exit 5
}
