import { createPrivateKey, sign } from 'node:crypto'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from './archive.ts'

/** Hashes of all files but those of `apart`, in the form that `sha256sum --check` reads, and their signature if there is a key. */
export function writeChecksums(folder: string, apart: string, keyFile: string | undefined): void {
  const files = globSync('**/*', { cwd: folder, withFileTypes: true })
    .filter((file) => file.isFile())
    .map((file) => join(file.parentPath, file.name).slice(folder.length + 1))
    .filter((name) => !name.startsWith('SHA256SUMS') && !name.startsWith(`${apart}/`))
    .sort()
  const sums = files.map((name) => `${sha256(readFileSync(join(folder, name)))}  ${name}\n`).join('')
  writeFileSync(join(folder, 'SHA256SUMS'), sums)
  if (keyFile === undefined) return
  const key = createPrivateKey(readFileSync(keyFile))
  if (key.asymmetricKeyType !== 'ed25519')
    throw new Error(`${keyFile} has a key of type ${key.asymmetricKeyType}, not Ed25519`)
  writeFileSync(join(folder, 'SHA256SUMS.sig'), sign(null, Buffer.from(sums), key))
}
