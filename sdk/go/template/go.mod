module {{module}}

go 1.23
