-- Starts `citeloom lsp` for texts that can cite; everything else is in the server.
local M = {}
local clients = {} -- ids by root folder

M.options = {
  cmd = { "citeloom", "lsp" },
  filetypes = { "tex", "plaintex", "markdown", "pandoc", "quarto", "typst", "org" },
  init_options = vim.empty_dict(),
}

local function root_of(buffer)
  local file = vim.api.nvim_buf_get_name(buffer)
  local folder = file ~= "" and vim.fn.fnamemodify(file, ":p:h") or vim.fn.getcwd()
  local home = vim.fn.finddir(".citeloom", vim.fn.escape(folder, " ,;") .. ";")
  return home ~= "" and vim.fn.fnamemodify(home, ":p:h:h") or folder
end

function M.start(buffer)
  local root = root_of(buffer)
  if not clients[root] or vim.lsp.get_client_by_id(clients[root]) == nil then
    clients[root] = vim.lsp.start_client({
      name = "citeloom",
      cmd = M.options.cmd,
      cmd_cwd = root,
      root_dir = root,
      init_options = M.options.init_options,
      on_attach = M.options.on_attach,
      capabilities = M.options.capabilities,
    })
  end
  if clients[root] then
    vim.lsp.buf_attach_client(buffer, clients[root])
    vim.bo[buffer].omnifunc = "v:lua.vim.lsp.omnifunc"
  end
end

function M.check()
  vim.lsp.buf_request(0, "workspace/executeCommand", {
    command = "citeloom.check",
    arguments = { vim.uri_from_bufnr(0) },
  }, function(_, summary)
    if summary and summary ~= vim.NIL then
      vim.notify("Citeloom: " .. summary)
    end
  end)
end

function M.setup(options)
  M.options = vim.tbl_extend("force", M.options, options or {})
  vim.api.nvim_create_autocmd("FileType", {
    group = vim.api.nvim_create_augroup("citeloom", { clear = true }),
    pattern = M.options.filetypes,
    callback = function(event)
      M.start(event.buf)
    end,
  })
  vim.api.nvim_create_user_command("CiteloomCheck", M.check, { desc = "Check this text with the chat model" })
end

return M
