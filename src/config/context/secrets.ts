import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { SecretValues } from '#kernel/secret-values.ts'
import { readSmallFileSync } from '#kernel/small-file.ts'
import type { Environment } from './substitute.ts'

type SecretAnswer = { readonly value: string } | { readonly problem: string; readonly absent: boolean }

/** Secrets of a cluster that have been fetched. */
export type SecretLookup = (secretName: string, key: string) => string | undefined

const component = /^[A-Za-z0-9._-]{1,253}$/

/**
 * Secrets by name and key: the file `<folder>/<name>/<key>` without its last line ending, the Secret of the cluster
 * if there is one, or the environment variable `<NAME>_<KEY>` in capitals. A name can never leave the folder.
 * Messages show `secret NAME/KEY` instead of a value.
 */
export class SecretSource {
  /** Digests of returned secrets, so that a changed secret is a changed configuration. */
  readonly used = new Map<string, string>()
  readonly #folder: string
  readonly #environment: Environment
  readonly #hidden: SecretValues
  readonly #cluster: SecretLookup | undefined

  constructor(folder: string, environment: Environment, hidden: SecretValues, cluster?: SecretLookup) {
    this.#hidden = hidden
    this.#cluster = cluster
    this.#folder = folder
    this.#environment = environment
  }

  read(secretName: string, key: string): SecretAnswer {
    for (const part of [secretName, key]) {
      if (!component.test(part) || /^\.+$/.test(part)) {
        return { problem: `"${part}" cannot be the name of a secret or of its key`, absent: false }
      }
    }
    const file = this.#fromFile(secretName, key)
    const value =
      file.text ??
      this.#cluster?.(secretName, key)?.replace(/\r?\n$/, '') ??
      this.#environment[variableName(secretName, key)]
    if (value === undefined) {
      if (file.problem !== undefined) return { problem: file.problem, absent: false }
      const inFolder = `${secretName}/${key} in the secrets folder`
      const inEnvironment = `${variableName(secretName, key)} in the environment`
      const inCluster = `the key ${key} of a Secret ${secretName} that may be read`
      const places = this.#cluster === undefined ? [inFolder] : [inCluster, inFolder]
      return { problem: `no such secret (${[...places, inEnvironment].join(', ')})`, absent: true }
    }
    this.used.set(`${secretName}/${key}`, createHash('sha256').update(value).digest('base64url'))
    this.#hidden.add(value, this.shownName(secretName, key))
    return { value }
  }

  /** What messages show instead of the value. */
  shownName(secretName: string, key: string): string {
    return this.#hidden.without(`secret ${secretName}/${key}`)
  }

  /** An existing file that can't be read is a problem: a newly created key must not replace the key in it. */
  #fromFile(secretName: string, key: string): { readonly text?: string; readonly problem?: string } {
    const file = join(this.#folder, secretName, key)
    try {
      return { text: readSmallFileSync(file).replace(/\r?\n$/, '') }
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      if (code === 'ENOENT' || code === 'ENOTDIR') return {}
      return { problem: code === undefined ? message : `${file} cannot be read (${code})` }
    }
  }
}

const variableName = (secretName: string, key: string): string =>
  `${secretName}_${key}`.toUpperCase().replace(/[^A-Z0-9]/g, '_')

/** The certificate of a Kubernetes TLS secret. */
export function certificateIn(secrets: SecretSource, secretName: string): string | undefined {
  const answer = secrets.read(secretName, 'tls.crt')
  return 'value' in answer ? answer.value : undefined
}

const maxBytes = 4 << 20

/** Files that objects name, such as a plug-in's code. */
export class NamedFiles {
  /** Digests of read files, so that a changed file is a changed configuration. */
  readonly used = new Map<string, string>()

  /** Throws with a reason for people if the file can't be read. */
  read(file: string, encoding: 'utf8' | 'base64' = 'utf8'): string {
    const text = readText(file, encoding)
    this.used.set(file, createHash('sha256').update(text).digest('base64url'))
    return text
  }
}

function readText(file: string, encoding: 'utf8' | 'base64'): string {
  let size: number
  try {
    const found = statSync(file)
    if (!found.isFile()) throw new Error('is not a file')
    size = found.size
    if (size <= maxBytes) return readFileSync(file, encoding)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const reason = code === 'ENOENT' ? 'does not exist' : `cannot be read (${code ?? String(error)})`
    throw new Error(`${file} ${reason}`, { cause: error })
  }
  throw new Error(`${file} is larger than ${maxBytes} bytes`)
}
