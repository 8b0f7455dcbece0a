import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { type BuiltFile, placeBuild } from './place-build.ts'

/** Builds the portal in memory, then writes it to `dist`. Run by `npm ci`. */

const folder = fileURLToPath(new URL('.', import.meta.url))

function hasVite(): boolean {
  try {
    createRequire(import.meta.url).resolve('react-dom')
    createRequire(import.meta.url).resolve('vite')
    return true
  } catch {
    return false
  }
}

async function build(): Promise<readonly BuiltFile[]> {
  const vite = await import('vite')
  const built = await vite.build({ configFile: `${folder}vite.config.ts`, logLevel: 'error', build: { write: false } })
  if (!('output' in built)) throw new Error('there is more than one build')
  return built.output.map((file) => ({
    name: file.fileName,
    content: Buffer.from(file.type === 'chunk' ? file.code : file.source),
  }))
}

if (hasVite()) {
  await placeBuild(`${folder}dist`, await build())
} else if (!existsSync(`${folder}dist/index.html`)) {
  console.log(
    'The portal was not built, since development dependencies are left out; everything else works without it.',
  )
}
