// A program that is linked to musl and uses SQLite through its Go driver. `musl-sqlite FILE SQL` prints the first column of
// each row; without SQL it makes a table and waits for a signal, as a server does.
package main

import (
	"database/sql"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	_ "github.com/mattn/go-sqlite3"
)

const table = "CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, who TEXT)"

func main() {
	db, err := sql.Open("sqlite3", "file:"+os.Args[1]+"?_busy_timeout=5000")
	check(err)
	defer db.Close()
	if len(os.Args) == 2 {
		fmt.Println("the program starts")
		_, err = db.Exec(table)
		check(err)
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, syscall.SIGTERM)
		<-ended
		return
	}
	rows, err := db.Query(os.Args[2])
	check(err)
	for rows.Next() {
		var value string
		check(rows.Scan(&value))
		fmt.Println(value)
	}
	check(rows.Err())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
