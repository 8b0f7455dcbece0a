import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { BuildContext } from '#config/build-context.ts'
import type { Path } from '#kernel/issues.ts'
import {
  isKeyName,
  isMeantAsPrivateKey,
  privateKeyEndings,
  readSigningKey,
  type TokenAlgorithm,
} from '#kernel/signing-key.ts'

/**
 * Reports a private key of this name, in `keys/` or a secret, that cannot sign with the algorithm. Where there is none, one
 * is created later. The secret is read in any case, so that a source that fetches secrets has it when keys are looked for.
 */
export function checkGivenKey(name: string, algorithm: TokenAlgorithm, at: Path, context: BuildContext): void {
  const inSecret = context.state.secrets.read(name, 'tls.key')
  try {
    const inFile = keyFile(name, context)
    if (inFile !== undefined) read(inFile.text, inFile.place, algorithm)
    else if ('value' in inSecret) read(inSecret.value, `tls.key of the secret ${name}`, algorithm)
    else if (!inSecret.absent && isKeyName(name)) throw new Error(inSecret.problem)
  } catch (error) {
    context.issues.error(at, error instanceof Error ? error.message : String(error))
  }
}

function keyFile(name: string, { folder, readFile }: BuildContext): { text: string; place: string } | undefined {
  if (!isKeyName(name)) return undefined
  for (const ending of privateKeyEndings) {
    const file = join(folder, 'keys', name + ending)
    if (!existsSync(file)) continue
    const text = readFile(file)
    if (isMeantAsPrivateKey(text)) return { text, place: `keys/${name}${ending}` }
  }
  return undefined
}

function read(text: string, place: string, algorithm: TokenAlgorithm): void {
  try {
    readSigningKey(text, algorithm)
  } catch (error) {
    throw new Error(`${place} ${error instanceof Error ? error.message : String(error)}`)
  }
}
