import { notifyManager, QueryClient } from '@tanstack/react-query'
import { ApiError } from '../api/call.ts'

const retries = 2

// Disables a submit button before the browser handles the next click, which may already be queued.
notifyManager.setScheduler(queueMicrotask)

/** A rejection is final; only temporary failures are retried. */
const mayPass = (error: Error): boolean => !(error instanceof ApiError) || error.status >= 500

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 15_000,
      retry: (failures, error) => failures < retries && mayPass(error),
      retryDelay: (failures) => 500 * 2 ** failures,
    },
    // A change needs a connection, or fails at once: nothing is sent later without the user's knowledge.
    mutations: { networkMode: 'always' },
  },
})
