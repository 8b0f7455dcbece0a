import { gzipSync } from 'node:zlib'

const block = 512
const longestName = 100

/** Files as a tar.gz with modes that only the owner can read. Names are plain and at most 100 characters long. */
export function tarGz(files: ReadonlyMap<string, string>, made: Date): Buffer {
  const parts: Buffer[] = []
  for (const [name, text] of files) {
    const content = Buffer.from(text)
    parts.push(header(name, content.length, made), content, Buffer.alloc(-content.length & (block - 1)))
  }
  return gzipSync(Buffer.concat([...parts, Buffer.alloc(2 * block)]))
}

/** The format "ustar" of POSIX. */
function header(name: string, bytes: number, made: Date): Buffer {
  if (Buffer.byteLength(name) > longestName) throw new Error(`the name ${name} is too long for the archive`)
  const head = Buffer.alloc(block)
  const octal = (number: number, length: number): string => `${number.toString(8).padStart(length - 1, '0')}\0`
  head.write(name, 0)
  head.write(octal(0o600, 8), 100)
  head.write(octal(0, 8), 108)
  head.write(octal(0, 8), 116)
  head.write(octal(bytes, 12), 124)
  head.write(octal(Math.floor(made.getTime() / 1000), 12), 136)
  head.write(' '.repeat(8), 148)
  head.write('0', 156)
  head.write('ustar\0', 257)
  head.write('00', 263)
  const sum = head.reduce((total, byte) => total + byte, 0)
  head.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return head
}
