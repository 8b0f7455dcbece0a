import '@mantine/core/styles.css'
import './app/portal.css'
import { setNonce } from 'get-nonce'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { chooseLanguage } from '#sdk/page/languages.ts'
import { App } from './app/app.tsx'
import { loadCatalog, showCatalog } from './app/catalogs.ts'
import { rememberedLanguage, TranslationProvider } from './app/i18n.tsx'
import { settings } from './app/settings.ts'

// For the one style that an open dialog adds.
setNonce(settings.nonce)

const element = document.getElementById('portal')
if (element === null) throw new Error('the page has no place for the portal')

const language = chooseLanguage(rememberedLanguage(), navigator.languages)
document.documentElement.lang = language
const catalog = await loadCatalog(language).catch(() => undefined)

if (catalog === undefined) {
  // Without texts, it cannot be in the user's language.
  const again = document.createElement('a')
  again.href = ''
  again.textContent = "The portal couldn't load. Reload the page."
  element.append(again)
} else {
  showCatalog(language, catalog)
  createRoot(element).render(
    <StrictMode>
      <TranslationProvider first={{ language, catalog }}>
        <App />
      </TranslationProvider>
    </StrictMode>,
  )
}
