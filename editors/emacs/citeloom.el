;;; citeloom.el --- Citations by meaning, with the words  -*- lexical-binding: t; -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1") (eglot "1.9"))
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Starts `citeloom lsp' by Eglot in texts that can cite; everything else is in the server.
;; (require 'citeloom) and (add-hook 'LaTeX-mode-hook #'eglot-ensure)

;;; Code:

(require 'eglot)

(defgroup citeloom nil "Citations by meaning." :group 'tex)

(defcustom citeloom-command '("citeloom" "lsp")
  "The language server, with its arguments."
  :type '(repeat string))

(defcustom citeloom-options nil
  "Options for the server: a property list of :maxCalls and :judgeOnSave."
  :type 'plist)

(defconst citeloom-modes
  '((tex-mode :language-id "latex") (latex-mode :language-id "latex") (LaTeX-mode :language-id "latex")
    (markdown-mode :language-id "markdown") (poly-quarto-mode :language-id "quarto")
    (typst-ts-mode :language-id "typst") (org-mode :language-id "org"))
  "Modes of texts that can cite.")

(defun citeloom--contact (&optional _interactive _project)
  "The command of the server, with its options."
  (append citeloom-command (and citeloom-options (list :initializationOptions citeloom-options))))

(add-to-list 'eglot-server-programs (cons citeloom-modes #'citeloom--contact))

(defun citeloom-check ()
  "Have this text checked by the configured chat model."
  (interactive)
  (let ((summary (jsonrpc-request (eglot--current-server-or-lose) :workspace/executeCommand
                                  (list :command "citeloom.check"
                                        :arguments (vector (plist-get (eglot--TextDocumentIdentifier) :uri)))
                                  :timeout 3600)))
    (when summary (message "Citeloom: %s" summary))))

(provide 'citeloom)
;;; citeloom.el ends here
