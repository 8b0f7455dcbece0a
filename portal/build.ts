import { existsSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

/** Builds the portal into `dist`, with compressed copies beside every asset. Run by `npm ci`. */

const folder = fileURLToPath(new URL('.', import.meta.url))
const assets = `${folder}dist/assets/`

function hasVite(): boolean {
  try {
    createRequire(import.meta.url).resolve('react-dom')
    createRequire(import.meta.url).resolve('vite')
    return true
  } catch {
    return false
  }
}

if (hasVite()) {
  const { build } = await import('vite')
  await build({ configFile: `${folder}vite.config.ts`, logLevel: 'error' })
  await compress()
} else if (!existsSync(`${folder}dist/index.html`)) {
  console.log(
    'The portal was not built, since development dependencies are left out; everything else works without it.',
  )
}

async function compress(): Promise<void> {
  const names = (await readdir(assets)).filter((name) => /\.(?:js|css|svg|json)$/.test(name))
  await Promise.all(
    names.map(async (name) => {
      const plain = await readFile(assets + name)
      const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } }
      await writeFile(`${assets}${name}.br`, await promisify(brotliCompress)(plain, quality))
      await writeFile(`${assets}${name}.gz`, await promisify(gzip)(plain, { level: 9 }))
    }),
  )
}
