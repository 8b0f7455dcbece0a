import { stat } from 'node:fs/promises'
import { readSmallFile } from '#kernel/small-file.ts'

/** A bearer token in a file that its owner replaces from time to time. */
export class TokenFile {
  readonly #path: string
  #version = ''
  #token = ''

  constructor(path: string) {
    this.#path = path
  }

  /** The token as it stands now; the file is read again only when it was replaced or rewritten. */
  async read(): Promise<string> {
    const { ino, mtimeMs, size } = await stat(this.#path)
    const version = `${ino} ${mtimeMs} ${size}`
    if (version !== this.#version) {
      this.#token = (await readSmallFile(this.#path)).trim()
      this.#version = version
    }
    return this.#token
  }
}
