import java.util.*;
import java.util.concurrent.*;
import java.nio.file.*;

public class Main {
    static int depth;
    static void deep() { depth++; deep(); }
    static String maybe(int i) { return i % 1000 == 0 ? null : "x" + i; }
    static long work(int seed) {
        long sum = 0;
        for (int i = 1; i < 300000; i++) {
            try {
                sum += maybe(i + seed).length(); // null checks are made by SIGSEGV
            } catch (NullPointerException e) {
                sum += 1000;
            }
            if (i % 100 == 0) sum += new TreeMap<>(Map.of(i, "a", i + 1, "b")).firstKey();
        }
        return sum;
    }
    public static void main(String[] arguments) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(8);
        List<Future<Long>> results = new ArrayList<>();
        for (int i = 0; i < 16; i++) { final int seed = i; results.add(pool.submit(() -> work(seed))); }
        for (Future<Long> result : results) System.out.println(result.get());
        try { deep(); } catch (StackOverflowError e) { System.out.println("too deep " + (depth > 1000)); }
        Files.readString(Path.of("gate"));
        System.gc();
        Process child = new ProcessBuilder("sh", "-c", "echo child; exit 3").inheritIO().start();
        System.out.println(child.waitFor());
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
        pool.shutdown();
        System.exit(6);
    }
}
