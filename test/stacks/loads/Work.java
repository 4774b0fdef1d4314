import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;

/** Has functions that call each other, sorting, and texts. With an argument it requests a perf map of itself by jcmd once it
 * is warm. */
public class Work {
    static int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }

    static double matrices(int size) {
        double[][] a = new double[size][size];
        double[][] product = new double[size][size];
        for (double[] row : a) java.util.Arrays.fill(row, 1.5);
        for (int i = 0; i < size; i++)
            for (int j = 0; j < size; j++)
                for (int k = 0; k < size; k++) product[i][j] += a[i][k] * a[k][j];
        return product[1][1];
    }

    static int texts(int count) {
        Random dice = new Random(19);
        List<String> names = new ArrayList<>();
        for (int i = 0; i < count; i++) names.add("name" + dice.nextInt(count));
        names.sort(Comparator.comparing((String name) -> name.length()).thenComparing(Comparator.naturalOrder()));
        return String.join(",", names).replaceAll("[0-9]+", "n").length();
    }

    static double round() {
        return fibonacci(28) + matrices(120) + texts(20000);
    }

    static double usedSeconds() {
        var system = (com.sun.management.OperatingSystemMXBean) java.lang.management.ManagementFactory.getOperatingSystemMXBean();
        return system.getProcessCpuTime() / 1e9;
    }

    static void writePerfMap() throws Exception {
        ProcessBuilder jcmd = new ProcessBuilder("jcmd", "" + ProcessHandle.current().pid(), "Compiler.perfmap");
        jcmd.environment().remove("LD_PRELOAD");
        jcmd.redirectErrorStream(true).redirectOutput(new java.io.File("jcmd.log")).start().waitFor();
    }

    public static void main(String[] arguments) throws Exception {
        boolean isMapWanted = arguments.length > 0;
        double sum = 0;
        while (usedSeconds() < 8) {
            sum += round();
            if (isMapWanted && usedSeconds() > 3) {
                writePerfMap();
                isMapWanted = false;
            }
        }
        System.out.println(sum > 0 ? "done" : "");
    }
}
