import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { builtProgram } from '#testing/kubernetes/go-program.ts'

const moduleFolder = fileURLToPath(new URL('../../kube/spiffe/', import.meta.url))

/** A verifier of JWT-SVIDs with go-spiffe, made on first use. Throws if it is not available. */
export const spiffeVerifier = (): Promise<string> =>
  builtProgram({
    name: `verify-svid-${createHash('sha256')
      .update(readFileSync(join(moduleFolder, 'main.go')))
      .digest('hex')
      .slice(0, 8)}`,
    moduleFolder,
    module: 'github.com/spiffe/go-spiffe/v2',
    package: '.',
    cacheFolder: 'spiffe',
    variables: () => ({}),
  })
