module longshore.example/careless

go 1.21
