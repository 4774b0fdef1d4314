module job

go 1.18
