module becket

go 1.23
