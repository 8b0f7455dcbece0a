// `kustomize build FOLDER`, from the same modules as kubectl's: prints the objects of a kustomization.
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), os.Args[len(os.Args)-1])
	if err == nil {
		var text []byte
		if text, err = built.AsYaml(); err == nil {
			_, err = os.Stdout.Write(text)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
