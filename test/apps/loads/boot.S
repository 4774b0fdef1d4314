# A boot sector: works for some seconds, says on the first serial port what came of it, sleeps until
# a byte comes from there, and has QEMU end (isa-debug-exit at 0x501).
        .code16
        .globl _start
        .set data, 0x3f8
        .set line_status, 0x3fd
_start:
        xorw %ax, %ax
        movw %ax, %ds
        movw %ax, %ss
        movw $0x7c00, %sp
        movl $1600000000, %ecx
        movl $1, %eax
work:
        imull $1664525, %eax, %eax
        addl $1013904223, %eax
        decl %ecx
        jnz work
        movw $8, %cx
        movl %eax, %ebx
digit:
        roll $4, %ebx
        movb %bl, %al
        andb $15, %al
        addb $'a', %al
        movw $data, %dx
        outb %al, %dx
        decw %cx
        jnz digit
        movb $'\n', %al
        outb %al, %dx
        sti
sleep:
        hlt
        movw $line_status, %dx
        inb %dx, %al
        testb $1, %al
        jz sleep
        movb $2, %al
        movw $0x501, %dx
        outb %al, %dx
        jmp sleep
        .org 510
        .word 0xaa55
