"""Stacks in compiled programs: growing lists of items of one size, as LLVM IR text over libc's ``malloc``.

A stack is the address of a record ``{ptr data, i64 length, i64 capacity, i64 item_bytes, ptr next}``; null is
the empty stack. ``next`` chains all stacks of one run, whose head is the run's *arena*: memory is given back
by walking the chain once, when the run ends or, where the program returns stacks, when Python forgets them.
Items below ``length`` that were never written are zero.
"""

RUNTIME = """
declare ptr @malloc(i64)
declare ptr @realloc(ptr, i64)
declare void @free(ptr)
declare ptr @memcpy(ptr, ptr, i64)
declare ptr @memset(ptr, i32, i64)

; A new empty stack, or null when memory is short.
define ptr @catena_stack_new(ptr %arena, i64 %item_bytes) {
entry:
  %stack = call ptr @malloc(i64 40)
  %short = icmp eq ptr %stack, null
  br i1 %short, label %done, label %fill
fill:
  call ptr @memset(ptr %stack, i32 0, i64 24)
  %bytes_slot = getelementptr i8, ptr %stack, i64 24
  store i64 %item_bytes, ptr %bytes_slot
  %next_slot = getelementptr i8, ptr %stack, i64 32
  %head = load ptr, ptr %arena
  store ptr %head, ptr %next_slot
  store ptr %stack, ptr %arena
  br label %done
done:
  ret ptr %stack
}

; Write item i, growing the stack to hold it. Returns 0, or -1 when memory is short.
define i64 @catena_stack_write(ptr %stack, i64 %i, ptr %item) {
entry:
  %none = icmp eq ptr %stack, null
  br i1 %none, label %short, label %look
look:
  %length_slot = getelementptr i8, ptr %stack, i64 8
  %capacity_slot = getelementptr i8, ptr %stack, i64 16
  %bytes_slot = getelementptr i8, ptr %stack, i64 24
  %length = load i64, ptr %length_slot
  %capacity = load i64, ptr %capacity_slot
  %bytes = load i64, ptr %bytes_slot
  %old = load ptr, ptr %stack
  %fits = icmp slt i64 %i, %capacity
  br i1 %fits, label %write, label %grow
grow:
  %needed = add i64 %i, 1
  %double = mul i64 %capacity, 2
  %more = icmp sgt i64 %double, %needed
  %least = select i1 %more, i64 %double, i64 %needed
  %small = icmp slt i64 %least, 8
  %wanted = select i1 %small, i64 8, i64 %least
  %size = mul i64 %wanted, %bytes
  %size1 = add i64 %size, 1
  %new = call ptr @realloc(ptr %old, i64 %size1)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %short, label %grown
grown:
  store ptr %new, ptr %stack
  store i64 %wanted, ptr %capacity_slot
  br label %write
write:
  %data = phi ptr [ %old, %look ], [ %new, %grown ]
  %gap = icmp sgt i64 %i, %length
  br i1 %gap, label %clear, label %copy
clear:
  %first = mul i64 %length, %bytes
  %gap_start = getelementptr i8, ptr %data, i64 %first
  %count = sub i64 %i, %length
  %gap_bytes = mul i64 %count, %bytes
  call ptr @memset(ptr %gap_start, i32 0, i64 %gap_bytes)
  br label %copy
copy:
  %offset = mul i64 %i, %bytes
  %place = getelementptr i8, ptr %data, i64 %offset
  call ptr @memcpy(ptr %place, ptr %item, i64 %bytes)
  %end = add i64 %i, 1
  %longer = icmp sgt i64 %end, %length
  %now = select i1 %longer, i64 %end, i64 %length
  store i64 %now, ptr %length_slot
  ret i64 0
short:
  ret i64 -1
}

define i64 @catena_stack_length(ptr %stack) {
entry:
  %none = icmp eq ptr %stack, null
  br i1 %none, label %empty, label %look
look:
  %length_slot = getelementptr i8, ptr %stack, i64 8
  %length = load i64, ptr %length_slot
  ret i64 %length
empty:
  ret i64 0
}

; The address of item i, or null beyond the end.
define ptr @catena_stack_item(ptr %stack, i64 %i) {
entry:
  %length = call i64 @catena_stack_length(ptr %stack)
  %inside = icmp ult i64 %i, %length
  br i1 %inside, label %look, label %outside
look:
  %bytes_slot = getelementptr i8, ptr %stack, i64 24
  %bytes = load i64, ptr %bytes_slot
  %data = load ptr, ptr %stack
  %offset = mul i64 %i, %bytes
  %place = getelementptr i8, ptr %data, i64 %offset
  ret ptr %place
outside:
  ret ptr null
}

; Free the stacks from %head up to, not including, %stop.
define void @catena_stack_free_chain(ptr %head, ptr %stop) {
entry:
  br label %loop
loop:
  %stack = phi ptr [ %head, %entry ], [ %next, %body ]
  %last = icmp eq ptr %stack, %stop
  br i1 %last, label %done, label %body
body:
  %next_slot = getelementptr i8, ptr %stack, i64 32
  %next = load ptr, ptr %next_slot
  %data = load ptr, ptr %stack
  call void @free(ptr %data)
  call void @free(ptr %stack)
  br label %loop
done:
  ret void
}

define void @catena_stack_free_list(ptr %head) {
entry:
  call void @catena_stack_free_chain(ptr %head, ptr null)
  ret void
}

define void @catena_stack_free_until(ptr %arena, ptr %saved) {
entry:
  %head = load ptr, ptr %arena
  call void @catena_stack_free_chain(ptr %head, ptr %saved)
  store ptr %saved, ptr %arena
  ret void
}

define void @catena_stack_free(ptr %arena) {
entry:
  call void @catena_stack_free_until(ptr %arena, ptr null)
  ret void
}
"""
