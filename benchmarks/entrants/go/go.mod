module extension

go 1.23

require becket v0.2.0

replace becket => ../../../sdk/go
